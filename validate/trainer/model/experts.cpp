#include "validate/trainer/model/experts.hpp"

namespace stepcast::validate {
namespace {

std::size_t sum_of(Indexes counts) {
  std::size_t sum = 0;
  for (const std::int32_t count : counts) sum += static_cast<std::size_t>(count);
  return sum;
}

std::vector<std::size_t> by_rank(Indexes counts, std::size_t ranks) {
  const std::size_t of_one = counts.size() / ranks;
  std::vector<std::size_t> sums;
  for (std::size_t r = 0; r < ranks; ++r)
    sums.push_back(sum_of(counts.subspan(r * of_one, of_one)));
  return sums;
}

}  // namespace

template <class Real>
ExpertActivations<Real> make_expert_activations(Kernels<Real>& kernels, const RankShare& s) {
  const ExpertShare& e = s.experts;
  const auto all = static_cast<std::size_t>(e.choice.experts);
  const std::size_t chosen = s.tokens * static_cast<std::size_t>(e.choice.per_token);
  ExpertActivations<Real> kept{.logits = kernels.allocate(s.tokens * all),
                               .choice = kernels.allocate_tokens(chosen),
                               .row = kernels.allocate_tokens(chosen),
                               .counts = kernels.allocate_tokens(2 * all),
                               .rows = kernels.allocate(e.rows_in * s.hidden),
                               .weights = kernels.allocate(e.rows_in),
                               .gate = kernels.allocate(e.rows_in * e.ffn),
                               .up = kernels.allocate(e.rows_in * e.ffn),
                               .product = kernels.allocate(e.rows_in * e.ffn),
                               .by_rank = {},
                               .rows_out = e.rows_out,
                               .rows_in = e.rows_in};
  if (e.choice.padded) {
    const std::vector<Token> equal(all, static_cast<Token>(e.choice.capacity));
    kernels.upload_tokens(kept.counts.part(all, all), equal);
    kept.by_rank = {by_rank(equal, e.ranks), by_rank(equal, e.ranks)};
  }
  return kept;
}

template <class Real>
ExpertWorkspace<Real>::ExpertWorkspace(Kernels<Real>& kernels, const RankShare& s) {
  const ExpertShare& e = s.experts;
  const auto rows = [&](Buffer<Real>& all, Buffer<Real>& weights, std::size_t count) {
    all = kernels.allocate(count * s.hidden);
    weights = kernels.allocate(count);
  };
  rows(home, home_weights, e.rows_out);
  if (e.shared()) rows(arrived, arrived_weights, e.rows_in);
  if (e.sorts()) rows(sorted, sorted_weights, e.rows_in);
  dgate = kernels.allocate(e.rows_in * e.ffn);
  dup = kernels.allocate(e.rows_in * e.ffn);
  dproduct = kernels.allocate(e.rows_in * e.ffn);
  dlogits = kernels.allocate(s.tokens * static_cast<std::size_t>(e.choice.experts));
  dx = kernels.allocate(e.choice.experts > 0 ? s.tokens * s.hidden : 0);
}

template <class Real>
Experts<Real>::Experts(const RankShare& share, StepCalls<Real>& calls, Parameters<Real>& parameters)
    : share_(share),
      experts_(share.experts),
      calls_(calls),
      own_calls_(calls),
      parameters_(parameters),
      work_(calls.kernels(), share) {}

/// Rows of each expert here, of each source.
template <class Real>
Indexes Experts<Real>::arrivals(const ExpertActivations<Real>& kept) const {
  const Indexes counts = kept.counts.all();
  const std::size_t all = counts.size() / 2;
  return experts_.shared() ? counts.last(all) : counts.first(all);
}

/// Where only the tokens know how many rows go where, the host stops until it knows as well.
template <class Real>
void Experts<Real>::count(ExpertActivations<Real>& kept) {
  if (!experts_.counted()) return;
  const std::size_t all = kept.counts.size() / 2;
  if (experts_.shared())
    own_calls_.exchange_counts(kept.counts.part(0, all), kept.counts.part(all, all));
  std::vector<Token> counts(kept.counts.size());
  own_calls_.read(counts, kept.counts.all());
  const Indexes out = std::span(counts).first(all);
  const Indexes in = experts_.shared() ? Indexes(std::span(counts).last(all)) : out;
  kept.rows_out = sum_of(out);
  kept.rows_in = sum_of(in);
  kept.by_rank = {by_rank(out, experts_.ranks), by_rank(in, experts_.ranks)};
}

template <class Real>
auto Experts<Real>::at_home(std::size_t count) -> Rows {
  return {work_.home.part(0, count * share_.hidden), work_.home_weights.part(0, count)};
}

template <class Real>
auto Experts<Real>::at_experts(std::size_t count) -> Rows {
  if (!experts_.shared()) return at_home(count);
  Buffer<Real>& rows = experts_.sorts() ? work_.sorted : work_.arrived;
  Buffer<Real>& weights = experts_.sorts() ? work_.sorted_weights : work_.arrived_weights;
  return {rows.part(0, count * share_.hidden), weights.part(0, count)};
}

template <class Real>
void Experts<Real>::go(const char* exchange, const char* sort, const char* pass,
                       const ExpertActivations<Real>& kept, const Rows& to, bool weighted) {
  if (!experts_.shared()) return;
  const Rows from = at_home(kept.rows_out);
  const bool sorts = experts_.sorts();
  const Rows first = {sorts ? work_.arrived.part(0, to.rows.size()) : to.rows,
                      sorts ? work_.arrived_weights.part(0, to.weights.size()) : to.weights};
  std::optional<MovedRows<Real>> weights;
  if (weighted) weights = MovedRows<Real>{from.weights, first.weights};
  own_calls_.exchange(Name(exchange, pass), {from.rows, first.rows}, weights, kept.by_rank, width(),
                      false);
  if (!sorts) return;
  if (weighted) weights = MovedRows<Real>{first.weights, to.weights};
  own_calls_.sort(Name(sort, pass), {first.rows, to.rows}, weights, arrivals(kept),
                  as_count(experts_.here), width(), false);
}

template <class Real>
void Experts<Real>::come_back(const char* exchange, const char* sort, const char* pass,
                              const ExpertActivations<Real>& kept, bool weighted) {
  if (!experts_.shared()) return;
  const Rows from = at_experts(kept.rows_in), to = at_home(kept.rows_out);
  const Rows last = {work_.arrived.part(0, from.rows.size()),
                     work_.arrived_weights.part(0, from.weights.size())};
  std::optional<MovedRows<Real>> weights;
  if (weighted) weights = MovedRows<Real>{from.weights, last.weights};
  if (experts_.sorts())
    own_calls_.sort(Name(sort, pass), {from.rows, last.rows}, weights, arrivals(kept),
                    as_count(experts_.here), width(), true);
  if (weighted) weights = MovedRows<Real>{last.weights, to.weights};
  own_calls_.exchange(Name(exchange, pass), {last.rows, to.rows}, weights, kept.by_rank, width(),
                      true);
}

template <class Real>
auto Experts<Real>::linear(LayerTensor tensor) const -> GroupedLinear {
  const std::size_t hidden = share_.hidden, ffn = experts_.ffn;
  if (tensor == experts_gate) return {"layer.experts.gate", ffn, hidden};
  if (tensor == experts_up) return {"layer.experts.up", ffn, hidden};
  return {"layer.experts.down", hidden, ffn};
}

// y (R,out) = x (R,in) W^T by the rows of each expert.
template <class Real>
void Experts<Real>::product_forward(std::size_t unit, const ExpertActivations<Real>& kept,
                                    LayerTensor tensor, Out y, In x) {
  const GroupedLinear l = linear(tensor);
  own_calls_.products(
      Name(l.name, ".forward"), Layout::nt, y, x, parameters_.weight(unit, tensor), arrivals(kept),
      {as_count(experts_.here), as_count(kept.rows_in), as_count(l.out), as_count(l.in)});
}

// dx (R,in) = dy (R,out) W; dW (out,in) = dy^T x.
template <class Real>
void Experts<Real>::product_backward(std::size_t unit, const ExpertActivations<Real>& kept,
                                     LayerTensor tensor, Out dx, In dy, In x, bool accumulate) {
  const GroupedLinear l = linear(tensor);
  const std::int64_t here = as_count(experts_.here), rows = as_count(kept.rows_in);
  own_calls_.products(Name(l.name, ".dgrad"), Layout::nn, dx, dy, parameters_.weight(unit, tensor),
                      arrivals(kept), {here, rows, as_count(l.in), as_count(l.out), accumulate});
  own_calls_.products(Name(l.name, ".wgrad"), Layout::tn, parameters_.gradient(unit, tensor), dy, x,
                      arrivals(kept), {here, rows, as_count(l.out), as_count(l.in)});
  parameters_.complete(unit, tensor);
}

template <class Real>
void Experts<Real>::inner_forward(std::size_t unit, In x, ExpertActivations<Real>& kept) {
  const ExpertShare& e = experts_;
  const auto all = static_cast<std::size_t>(e.choice.experts);
  calls_.gemm("layer.experts.router.forward", Layout::nt, kept.logits.all(), x,
              parameters_.weight(unit, experts_router),
              {.m = as_count(share_.tokens), .n = e.choice.experts, .k = width()});
  own_calls_.choose(kept.choice.all(), kept.row.all(), kept.counts.part(0, all),
                    e.shared() ? work_.home_weights.all() : kept.weights.all(), kept.logits.all(),
                    e.choice);
  count(kept);
  const Rows to = {kept.rows.part(0, kept.rows_in * share_.hidden),
                   kept.weights.part(0, kept.rows_in)};
  own_calls_.rows_of_tokens("layer.experts.permute.forward",
                            e.shared() ? at_home(kept.rows_out).rows : to.rows, x, kept.row.all(),
                            width());
  go("layer.experts.dispatch", "layer.experts.sort", ".forward", kept, to, true);
  const std::size_t inner = kept.rows_in * e.ffn;
  product_forward(unit, kept, experts_gate, kept.gate.part(0, inner), to.rows);
  product_forward(unit, kept, experts_up, kept.up.part(0, inner), to.rows);
  own_calls_.activation(kept.product.part(0, inner), kept.gate.part(0, inner),
                        kept.up.part(0, inner), to.weights);
}

template <class Real>
void Experts<Real>::outer_forward(std::size_t unit, const ExpertActivations<Real>& kept, Out y) {
  product_forward(unit, kept, experts_down, at_experts(kept.rows_in).rows,
                  kept.product.all().first(kept.rows_in * experts_.ffn));
  come_back("layer.experts.combine", "layer.experts.unsort", ".forward", kept, false);
  own_calls_.sums_of_rows("layer.experts.unpermute.forward", y, at_home(kept.rows_out).rows,
                          kept.row.all(), width());
}

template <class Real>
void Experts<Real>::backward(std::size_t unit, In x, ExpertActivations<Real>& kept, In dy, Out dx) {
  own_calls_.rows_of_tokens("layer.experts.unpermute.backward", at_home(kept.rows_out).rows, dy,
                            kept.row.all(), width());
  const Rows slopes = at_experts(kept.rows_in);
  go("layer.experts.combine", "layer.experts.unsort", ".backward", kept, slopes, false);
  inner_backward(unit, kept, slopes);
  come_back("layer.experts.dispatch", "layer.experts.sort", ".backward", kept, true);
  own_calls_.sums_of_rows("layer.experts.permute.backward", dx, at_home(kept.rows_out).rows,
                          kept.row.all(), width());
  router_backward(unit, x, kept, dx);
}

/// The gradient of the rows that came out of the experts becomes that of the rows that went in.
template <class Real>
void Experts<Real>::inner_backward(std::size_t unit, ExpertActivations<Real>& kept,
                                   const Rows& slopes) {
  const std::size_t inner = kept.rows_in * experts_.ffn;
  const In rows = kept.rows.part(0, kept.rows_in * share_.hidden);
  const Out dproduct = work_.dproduct.part(0, inner), dgate = work_.dgate.part(0, inner);
  const Out dup = work_.dup.part(0, inner);
  product_backward(unit, kept, experts_down, dproduct, slopes.rows, kept.product.part(0, inner),
                   false);
  own_calls_.activation_backward(dgate, dup, slopes.weights, dproduct, kept.gate.part(0, inner),
                                 kept.up.part(0, inner), kept.weights.part(0, kept.rows_in));
  product_backward(unit, kept, experts_gate, slopes.rows, dgate, rows, false);
  product_backward(unit, kept, experts_up, slopes.rows, dup, rows, true);
}

template <class Real>
void Experts<Real>::router_backward(std::size_t unit, In x, ExpertActivations<Real>& kept, Out dx) {
  const std::int64_t tokens = as_count(share_.tokens), all = experts_.choice.experts;
  own_calls_.choose_backward(work_.dlogits.all(), at_home(kept.rows_out).weights, kept.logits.all(),
                             kept.choice.all(), kept.row.all(), experts_.choice);
  calls_.gemm("layer.experts.router.dgrad", Layout::nn, work_.dx.all(), work_.dlogits.all(),
              parameters_.weight(unit, experts_router), {.m = tokens, .n = width(), .k = all});
  calls_.gemm("layer.experts.router.wgrad", Layout::tn, parameters_.gradient(unit, experts_router),
              work_.dlogits.all(), x, {.m = all, .n = width(), .k = tokens});
  parameters_.complete(unit, experts_router);
  calls_.add("layer.experts.sum.backward", dx, dx, work_.dx.all());
}

template ExpertActivations<float> make_expert_activations(Kernels<float>&, const RankShare&);
template ExpertActivations<double> make_expert_activations(Kernels<double>&, const RankShare&);
template ExpertActivations<Bfloat16> make_expert_activations(Kernels<Bfloat16>&, const RankShare&);
template ExpertActivations<Half> make_expert_activations(Kernels<Half>&, const RankShare&);
template struct ExpertWorkspace<float>;
template struct ExpertWorkspace<double>;
template struct ExpertWorkspace<Bfloat16>;
template struct ExpertWorkspace<Half>;
template class Experts<float>;
template class Experts<double>;
template class Experts<Bfloat16>;
template class Experts<Half>;

}  // namespace stepcast::validate
