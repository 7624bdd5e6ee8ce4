#include "workloads/pieces/own_experts_piece.hpp"

#include "workloads/pieces/expert_sizes.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

constexpr std::int64_t index_bytes = 4;  // of a choice, a row, a count

bool shares_experts(const PieceWriter& w) { return w.in().plan.expert.degree > 1; }
bool sorts_rows(const PieceWriter& w, const ExpertSizes& s) {
  return shares_experts(w) && s.experts > 1;
}

/// How many rows go where the tokens say, the host reads it, unless every expert has as many.
void own_counts(PieceWriter& w, const ExpertSizes& s) {
  if (pads_to_capacity(w.in()) || !(shares_experts(w) || drops_tokens(w.in()))) return;
  if (shares_experts(w))
    w.expert_collective("layer.experts.counts", CollectiveKind::all_to_all, index_bytes * s.all);
  w.host_wait();
}

/// Rows in one exchange, with their weights where they have some.
void own_exchange(PieceWriter& w, const ExpertSizes& s, const std::string& name, bool weights) {
  if (!shares_experts(w)) return;
  w.expert_collective(name, CollectiveKind::all_to_all,
                      s.sent_bytes() + (weights ? s.element * s.sent : 0));
}

/// Between the order of sources and that of experts: all read and written.
void own_sort(PieceWriter& w, const ExpertSizes& s, const std::string& name, bool weights) {
  if (!sorts_rows(w, s)) return;
  w.pass(name, permute, 2 * (s.taken_bytes() + (weights ? s.element * s.rows : 0)));
}

void own_product(PieceWriter& w, const ExpertSizes& s, Kernel kernel, std::int64_t in,
                 std::int64_t out) {
  const std::int64_t rows = s.rows * (in + out), weights = s.experts * in * out;
  kernel.family = grouped_gemm;
  kernel.dtype = w.in().precision.compute;
  kernel.batch = s.experts;
  kernel.flops =
      Flops(2.0 * static_cast<double>(s.rows) * static_cast<double>(in) * static_cast<double>(out));
  kernel.bytes = Bytes(s.element * (rows + weights + (kernel.accumulate ? s.rows * in : 0)));
  w.kernel(std::move(kernel));
}

Kernel own_kernel(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.name = "layer.experts." + name;
  kernel.m = m, kernel.n = n, kernel.k = k;
  return kernel;
}

void own_forward(PieceWriter& w, const ExpertSizes& s, const std::string& name, std::int64_t in,
                 std::int64_t out) {
  own_product(w, s, own_kernel(name + ".forward", s.rows_of_expert(), out, in), in, out);
}

void own_backward(PieceWriter& w, const ExpertSizes& s, const ParameterTensors& unit,
                  const std::string& name, std::int64_t in, std::int64_t out, bool accumulates) {
  Kernel dgrad = own_kernel(name + ".dgrad", s.rows_of_expert(), in, out);
  dgrad.accumulate = accumulates;
  own_product(w, s, std::move(dgrad), in, out);
  own_product(w, s, own_kernel(name + ".wgrad", out, in, s.rows_of_expert()), in, out);
  w.gradient(unit, "experts." + name);
}

/// Of the chosen experts of each token: which, its row, its weight.
std::int64_t choice_bytes(const ExpertSizes& s) {
  return s.tokens * s.per_token * (s.element + 2 * index_bytes);
}

}  // namespace

void write_own_experts_inner(PieceWriter& w) {
  const ExpertSizes s(w.in());
  const std::int64_t scores = s.element * s.tokens * s.all, inner = s.inner_bytes();
  w.gemm("layer.experts.router.forward", s.tokens, s.all, s.hidden);
  w.pass("layer.experts.choice.forward", router, scores + choice_bytes(s));
  own_counts(w, s);
  w.pass("layer.experts.permute.forward", permute, s.token_bytes() + s.sent_bytes());
  own_exchange(w, s, "layer.experts.dispatch.forward", true);
  own_sort(w, s, "layer.experts.sort.forward", true);
  own_forward(w, s, "gate", s.hidden, s.ffn);
  own_forward(w, s, "up", s.hidden, s.ffn);
  w.pass("layer.experts.activation.forward", activation, 3 * inner + s.element * s.rows);
}

void write_own_experts_outer(PieceWriter& w) {
  const ExpertSizes s(w.in());
  own_forward(w, s, "down", s.ffn, s.hidden);
  own_sort(w, s, "layer.experts.unsort.forward", false);
  own_exchange(w, s, "layer.experts.combine.forward", false);
  w.pass("layer.experts.unpermute.forward", permute, s.sent_bytes() + s.token_bytes());
}

void write_own_experts_backward(PieceWriter& w, const ParameterTensors& unit) {
  const ExpertSizes s(w.in());
  const std::int64_t scores = s.element * s.tokens * s.all, inner = s.inner_bytes();
  w.pass("layer.experts.unpermute.backward", permute, s.token_bytes() + s.sent_bytes());
  own_exchange(w, s, "layer.experts.combine.backward", false);
  own_sort(w, s, "layer.experts.unsort.backward", false);
  own_backward(w, s, unit, "down", s.ffn, s.hidden, false);
  w.pass("layer.experts.activation.backward", activation, 5 * inner + 2 * s.element * s.rows);
  own_backward(w, s, unit, "gate", s.hidden, s.ffn, false);
  own_backward(w, s, unit, "up", s.hidden, s.ffn, true);
  own_sort(w, s, "layer.experts.sort.backward", true);
  own_exchange(w, s, "layer.experts.dispatch.backward", true);
  w.pass("layer.experts.permute.backward", permute, s.sent_bytes() + s.token_bytes());
  w.pass("layer.experts.choice.backward", router, 2 * scores + choice_bytes(s));
  w.gemm("layer.experts.router.dgrad", s.tokens, s.hidden, s.all);
  w.weight_gradient("layer.experts.router.wgrad", s.all, s.hidden, s.tokens);
  w.gradient(unit, "router");
  w.pass("layer.experts.sum.backward", pointwise, 3 * s.token_bytes());
}

}  // namespace stepcast::workloads
