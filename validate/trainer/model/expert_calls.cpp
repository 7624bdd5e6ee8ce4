#include "validate/trainer/model/expert_calls.hpp"

#include <array>

namespace stepcast::validate {
namespace {

using workloads::Collective;
using workloads::CollectiveKind;
using workloads::Kernel;
using workloads::KernelFamily;

constexpr std::int64_t index_bytes = 4;

std::int64_t number_of(std::size_t elements) { return static_cast<std::int64_t>(elements); }

std::vector<std::size_t> times(const std::vector<std::size_t>& rows, std::int64_t width) {
  std::vector<std::size_t> elements = rows;
  for (std::size_t& count : elements) count *= static_cast<std::size_t>(width);
  return elements;
}

}  // namespace

template <class Real>
void ExpertCalls<Real>::pass(const Name& name, KernelFamily family, std::int64_t bytes,
                             const std::function<void(ExpertKernels<Real>&)>& work) {
  calls_.kernel(
      [&] {
        Kernel kernel;
        kernel.name = name.text();
        kernel.family = family;
        kernel.dtype = StepCalls<Real>::dtype;
        kernel.bytes = Bytes(bytes);
        return kernel;
      },
      [&] { work(calls_.kernels().experts()); });
}

// Scores in, and for each of a token's experts its number, its row and its weight.
template <class Real>
void ExpertCalls<Real>::choose(IndexesOut choice, IndexesOut row, IndexesOut counts, Out weights,
                               In logits, const ExpertChoice& how) {
  const std::int64_t chosen = number_of(choice.size());
  pass("layer.experts.choice.forward", KernelFamily::router,
       calls_.size * (number_of(logits.size()) + chosen) + 2 * index_bytes * chosen,
       [&](ExpertKernels<Real>& kernels) {
         kernels.choose(choice, row, counts, weights, logits, how);
       });
}

template <class Real>
void ExpertCalls<Real>::choose_backward(Out dlogits, In dweights, In logits, Indexes choice,
                                        Indexes row, const ExpertChoice& how) {
  const std::int64_t chosen = number_of(choice.size());
  pass("layer.experts.choice.backward", KernelFamily::router,
       calls_.size * (2 * number_of(logits.size()) + chosen) + 2 * index_bytes * chosen,
       [&](ExpertKernels<Real>& kernels) {
         kernels.choose_backward(dlogits, dweights, logits, choice, row, how);
       });
}

template <class Real>
void ExpertCalls<Real>::rows_of_tokens(const Name& name, Out rows, In x, Indexes row,
                                       std::int64_t width) {
  pass(name, KernelFamily::permute, calls_.size * number_of(rows.size() + x.size()),
       [&](ExpertKernels<Real>& kernels) { kernels.rows_of_tokens(rows, x, row, width); });
}

template <class Real>
void ExpertCalls<Real>::sums_of_rows(const Name& name, Out y, In rows, Indexes row,
                                     std::int64_t width) {
  pass(name, KernelFamily::permute, calls_.size * number_of(rows.size() + y.size()),
       [&](ExpertKernels<Real>& kernels) { kernels.sums_of_rows(y, rows, row, width); });
}

template <class Real>
void ExpertCalls<Real>::sort(const Name& name, MovedRows<Real> rows,
                             std::optional<MovedRows<Real>> weights, Indexes counts,
                             std::int64_t experts, std::int64_t width, bool back) {
  const std::size_t moved = rows.in.size() + (weights ? weights->in.size() : 0);
  pass(name, KernelFamily::permute, 2 * calls_.size * number_of(moved),
       [&](ExpertKernels<Real>& kernels) {
         kernels.sort_rows(rows.in, rows.out, counts, experts, width, back);
         if (weights) kernels.sort_rows(weights->in, weights->out, counts, experts, 1, back);
       });
}

template <class Real>
void ExpertCalls<Real>::products(const Name& name, Layout layout, Out c, In a, In b, Indexes counts,
                                 const GroupedProduct& what) {
  constexpr std::array<const char*, 3> layouts{"NT", "NN", "TN"};
  const std::int64_t rows = (what.rows + what.experts - 1) / what.experts;  // on average
  const bool over_rows = layout == Layout::tn;
  calls_.kernel(
      [&] {
        Kernel kernel;
        kernel.name = name.text();
        kernel.family = KernelFamily::grouped_gemm;
        kernel.dtype = StepCalls<Real>::dtype;
        kernel.m = over_rows ? what.n : rows;
        kernel.n = over_rows ? what.k : what.n;
        kernel.k = over_rows ? rows : what.k;
        kernel.batch = what.experts;
        kernel.accumulate = what.accumulate;
        kernel.flops = Flops(2.0 * static_cast<double>(what.rows) * static_cast<double>(what.n) *
                             static_cast<double>(what.k));
        kernel.bytes = Bytes(calls_.size *
                             number_of(a.size() + b.size() + (what.accumulate ? 2 : 1) * c.size()));
        return kernel;
      },
      [&] {
        calls_.kernels().experts().grouped_gemm(
            c, a, b, counts,
            {what.experts, what.n, what.k, layouts[static_cast<std::size_t>(layout)],
             what.accumulate});
      });
}

template <class Real>
void ExpertCalls<Real>::activation(Out y, In gate, In up, In weights) {
  pass("layer.experts.activation.forward", KernelFamily::activation,
       calls_.size * number_of(3 * y.size() + weights.size()),
       [&](ExpertKernels<Real>& kernels) { kernels.activation(y, gate, up, weights); });
}

template <class Real>
void ExpertCalls<Real>::activation_backward(Out dgate, Out dup, Out dweights, In dy, In gate, In up,
                                            In weights) {
  pass("layer.experts.activation.backward", KernelFamily::activation,
       calls_.size * number_of(5 * dy.size() + 2 * weights.size()),
       [&](ExpertKernels<Real>& kernels) {
         kernels.activation_backward(dgate, dup, dweights, dy, gate, up, weights);
       });
}

template <class Real>
void ExpertCalls<Real>::exchange_counts(Indexes mine, IndexesOut theirs) {
  calls_.join({"layer.experts.counts", CollectiveKind::all_to_all, workloads::GroupKind::expert,
               StepCalls<Real>::dtype, Bytes(index_bytes * number_of(mine.size()))},
              [&](Communicator& ranks) {
                const auto size = static_cast<std::size_t>(ranks.size());
                const std::vector<std::size_t> equal(size, mine.size() / size);
                ranks.all_to_all(mine, equal, theirs, equal);
              });
}

template <class Real>
void ExpertCalls<Real>::exchange(const Name& name, MovedRows<Real> rows,
                                 std::optional<MovedRows<Real>> weights, const RowsByRank& counts,
                                 std::int64_t width, bool back) {
  const auto at_home = [back](const MovedRows<Real>& some) {
    return number_of(back ? some.in.size() : some.out.size());
  };
  calls_.join({name.text(), CollectiveKind::all_to_all, workloads::GroupKind::expert,
               StepCalls<Real>::dtype,
               Bytes(calls_.size * (at_home(rows) + (weights ? at_home(*weights) : 0)))},
              [&](Communicator& ranks) {
                const auto& to = back ? counts.in : counts.out;
                const auto& from = back ? counts.out : counts.in;
                ranks.all_to_all(rows.out, times(to, width), rows.in, times(from, width));
                if (weights) ranks.all_to_all(weights->out, to, weights->in, from);
              });
}

template class ExpertCalls<float>;
template class ExpertCalls<double>;
template class ExpertCalls<Bfloat16>;
template class ExpertCalls<Half>;

}  // namespace stepcast::validate
