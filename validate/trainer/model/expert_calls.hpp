// What a layer of experts does beside the calls of step_calls.hpp: kernels and exchanges under the
// names of the simulator's program. Rows: of tokens, in the order of experts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "validate/trainer/model/step_calls.hpp"

namespace stepcast::validate {

/// How many rows of each rank of the expert group: that go out to it, that come in from it.
struct RowsByRank {
  std::vector<std::size_t> out, in;
};

/// What goes out from here and what comes in.
template <class Real>
struct MovedRows {
  std::span<const Real> out;
  std::span<Real> in;
};

/// The products of a rank's experts: `rows` in all.
struct GroupedProduct {
  std::int64_t experts = 0, rows = 0, n = 0, k = 0;
  bool accumulate = false;
};

template <class Real>
class ExpertCalls {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;

  explicit ExpertCalls(StepCalls<Real>& calls) : calls_(calls) {}

  void choose(IndexesOut choice, IndexesOut row, IndexesOut counts, Out weights, In logits,
              const ExpertChoice& how);
  void choose_backward(Out dlogits, In dweights, In logits, Indexes choice, Indexes row,
                       const ExpertChoice& how);
  void rows_of_tokens(const Name& name, Out rows, In x, Indexes row, std::int64_t width);
  void sums_of_rows(const Name& name, Out y, In rows, Indexes row, std::int64_t width);
  /// By source into by expert, or back; with them a number for each.
  void sort(const Name& name, MovedRows<Real> rows, std::optional<MovedRows<Real>> weights,
            Indexes counts, std::int64_t experts, std::int64_t width, bool back);
  void products(const Name& name, Layout layout, Out c, In a, In b, Indexes counts,
                const GroupedProduct& what);
  void activation(Out y, In gate, In up, In weights);
  void activation_backward(Out dgate, Out dup, Out dweights, In dy, In gate, In up, In weights);

  /// Equally many for each rank.
  void exchange_counts(Indexes mine, IndexesOut theirs);
  /// The host waits for them.
  void read(IndexesOut host, Indexes device) { calls_.kernels().experts().read(host, device); }
  /// Rows, and with them a number for each, in one exchange from the tokens' ranks or back to them.
  void exchange(const Name& name, MovedRows<Real> rows, std::optional<MovedRows<Real>> weights,
                const RowsByRank& counts, std::int64_t width, bool back);

 private:
  void pass(const Name& name, workloads::KernelFamily family, std::int64_t bytes,
            const std::function<void(ExpertKernels<Real>&)>& work);

  StepCalls<Real>& calls_;
};

}  // namespace stepcast::validate
