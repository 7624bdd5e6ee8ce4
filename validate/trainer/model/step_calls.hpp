// Everything that a rank does in a step goes through here: kernels of its device and collectives of
// its groups, under the names of the simulator's program, noted in the log when there is one. What
// the log says of shapes and bytes is computed from the memory that is passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "validate/trainer/device/kernels.hpp"
#include "validate/trainer/device/lanes.hpp"
#include "validate/trainer/model/operations.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

using workloads::Lane;

inline std::int64_t as_count(std::size_t elements) { return static_cast<std::int64_t>(elements); }

/// "layer.mlp.up" + ".dgrad".
struct Name {
  Name(std::string_view whole, std::string_view end = {}) : part(whole), suffix(end) {}
  Name(const char* whole) : part(whole) {}
  std::string text() const { return std::string(part) + std::string(suffix); }
  std::string_view part, suffix;
};

enum class Layout : std::uint8_t { nt, nn, tn };  // of a forward product, its dgrad, its wgrad

struct ProductSizes {
  std::int64_t m = 0, n = 0, k = 0;
  bool accumulate = false;
};

/// What a memory-bound kernel is, the bytes that it moves, of which type where it is not the
/// activations'.
struct Traffic {
  workloads::KernelFamily family{};
  std::int64_t bytes = 0;
  std::optional<workloads::Dtype> dtype{};
};

template <class Real>
class StepCalls {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;
  using WideOut = std::span<Wide<Real>>;
  using WideIn = std::span<const Wide<Real>>;
  using Tokens = std::span<const Token>;
  using Copy = CopyPiece<Real, Real>;
  using WideCopy = CopyPiece<Wide<Real>, Wide<Real>>;
  using WideningCopy = CopyPiece<Wide<Real>, Real>;
  using Mark = Lanes::Mark;

  static constexpr workloads::Dtype dtype = NumberTraits<Real>::dtype;
  // Doubles, of the tests, count as what they stand for.
  static constexpr std::int64_t size = workloads::Dtype::fp32 == dtype ? 4 : 2;

  /// On one lane, kernels and collectives follow each other in the order of the calls, but for the
  /// messages between stages (Software::collectives_hold_core).
  StepCalls(Kernels<Real>& kernels, Lanes& lanes, const Groups& groups, bool one_lane)
      : kernels_(kernels), lanes_(lanes), groups_(groups), one_lane_(one_lane) {}

  /// For work that the simulator's program does not have, on the compute lane.
  Kernels<Real>& kernels() { return on(workloads::compute), kernels_; }
  const Groups& groups() const { return groups_; }
  bool one_lane() const { return one_lane_; }
  void log_to(OperationLog* log) { log_ = log; }

  /// Order between lanes, as workloads::Calls has it.
  Mark record(Lane lane);
  void wait(Lane lane, Mark mark);
  Mark after(Lane later, Lane earlier);

  void gemm(const Name& name, Layout layout, Out c, In a, In b, const ProductSizes& sizes);
  void attention_forward(Out o, WideOut lse, In q, In k, In v, const AttentionSizes& s);
  void attention_backward(Out dq, Out dk, Out dv, In dout, In o, WideIn lse, In q, In k, In v,
                          const AttentionSizes& s);
  void rmsnorm_forward(const Name& name, Out y, WideOut rstd, In x, In w);
  void rmsnorm_backward(const Name& name, Out dx, Out dw, In dy, In x, In w, WideIn rstd);
  void rope(const Name& name, Out x, std::int64_t heads, bool backward);
  void swiglu_forward(Out y, In gate, In up);
  void swiglu_backward(Out dgate, Out dup, In dy, In gate, In up);
  void add(const Name& name, Out y, In a, In b);
  void embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part);
  void embedding_zero(Out dtable);
  void embedding_backward(Out dtable, In dy, Tokens ids, const VocabularyPart& part);
  void loss_forward(WideOut lse, WideOut target, In logits, Tokens targets,
                    const VocabularyPart& part);
  void loss_backward(Out logits, WideIn lse, Tokens targets, const VocabularyPart& part,
                     Wide<Real> scale);

  // Parameters and gradients, between where they are kept and the buffers of their collectives.
  void copies(Lane lane, const Name& name, std::span<const Copy> pieces);
  void copies_wide(Lane lane, const Name& name, std::span<const WideCopy> pieces);
  void copies_widening(Lane lane, const Name& name, std::span<const WideningCopy> pieces);
  void narrow(Lane lane, const Name& name, Out to, WideIn from);
  void widen(const Name& name, WideOut to, In from);
  void accumulate(const Name& name, WideOut sum, In more);

  // The optimizer. Numbers for all tensors stay on the device.
  void sums_of_squares(WideOut result, std::span<const WideIn> tensors);
  void scale_gradients(WideOut gradients, WideIn factor);
  void unscale(WideOut gradients, Wide<Real> factor, WideOut found);
  void adamw(WideOut p, WideOut m, WideOut v, WideIn g, const AdamW& how);
  /// Arithmetic on one number per tensor: work(kernels).
  template <class Work>
  void small(const Name& name, std::int64_t tensors, Work&& work) {
    pass(name, {optimizer, 8 * tensors, wide_dtype}, [&] { work(kernels_); });
  }

  /// A kernel of the compute lane that has no call of its own here, told by tell() where it is
  /// noted: work().
  template <class Tell, class Work>
  void kernel(Tell&& tell, Work&& work) {
    const Lane lane = on(workloads::compute);
    if (log_ == nullptr) return work();
    log_->run(lanes_, lane, tell(), work);
  }
  /// Likewise a collective that compute waits for.
  template <class Work>
  void join(workloads::Collective what, Work&& work) {
    const workloads::GroupKind kind = what.group;
    communicate(workloads::compute, std::move(what), [&] { work(group(kind)); });
  }

  /// Groups of one rank do nothing and are not noted. On the compute lane but for those of the data
  /// parallelism.
  void all_reduce(const Name& name, workloads::GroupKind group, Out values);
  void all_reduce_wide(const Name& name, workloads::GroupKind group, WideOut values,
                       Reduction how = Reduction::sum);
  void all_gather(const Name& name, workloads::GroupKind group, In mine, Out all);
  void reduce_scatter(const Name& name, workloads::GroupKind group, In all, Out mine);
  void reduce_shards(const Name& name, workloads::GroupKind group, WideIn all, WideOut mine);
  /// `values` may be changed when the mark is passed; compute goes on at once.
  Mark send_forward(In values);
  Mark send_backward(In values);
  /// They are there when the mark is passed. `free`, where given: `values` are in use until then.
  Mark receive_forward(Out values, std::optional<Mark> free);
  Mark receive_backward(Out values, std::optional<Mark> free);

 private:
  static constexpr workloads::KernelFamily optimizer = workloads::KernelFamily::optimizer;
  static constexpr workloads::Dtype wide_dtype = workloads::Dtype::fp32;
  static constexpr std::int64_t wide_size = 4;
  template <class Work>
  void pass(const Name& name, const Traffic& what, Work&& work) {
    pass_on(workloads::compute, name, what, std::forward<Work>(work));
  }
  template <class Work>
  void pass_on(Lane lane, const Name& name, const Traffic& what, Work&& work) {
    const Lane taken = on(lane);
    if (log_ == nullptr) return work();
    workloads::Kernel kernel;
    kernel.name = name.text();
    kernel.family = what.family;
    kernel.dtype = what.dtype.value_or(dtype);
    kernel.bytes = Bytes(what.bytes);
    log_->run(lanes_, taken, std::move(kernel), work);
  }
  template <class Work>
  void attention(workloads::KernelFamily family, std::int64_t bytes, const AttentionSizes& s,
                 Work&& work);
  template <class Work>
  void communicate(Lane lane, workloads::Collective what, Work&& work) {
    const Lane taken = on(lane);
    if (log_ == nullptr) return work();
    log_->run(lanes_, taken, std::move(what), work);
  }
  Mark exchange(Lane lane, workloads::GroupKind group, std::size_t elements,
                const std::function<void(Communicator&)>& work);
  Lane lane_of(workloads::GroupKind group) const;
  Communicator& group(workloads::GroupKind kind) const;
  /// What is called now goes there.
  Lane on(Lane lane);

  Kernels<Real>& kernels_;
  Lanes& lanes_;
  const Groups& groups_;
  bool one_lane_;
  OperationLog* log_ = nullptr;
};

}  // namespace stepcast::validate
