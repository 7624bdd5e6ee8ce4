// Bytes of activations that autograd keeps from forward to backward, for one micro-batch on one
// rank: per layer, for the head and loss. The tensors that each style of software saves.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/step/piece.hpp"

namespace stepcast::workloads {

class ActivationMemory {
 public:
  explicit ActivationMemory(const StepInputs& in, LayerKind kind = {})
      : in_(in), sizes_(in), kind_(kind) {}

  /// The tensors that a layer keeps without recompute but for its scores, in the order of forward.
  std::vector<std::int64_t> layer_tensors() const;
  std::int64_t layer_without_recompute() const;
  /// Kept per layer under the plan's recompute.
  std::int64_t layer() const;
  /// The score matrix of unfused attention, S = 2 b a s^2 / t, 2.5 S with dropout; 0 for flash
  /// kernels.
  std::int64_t scores() const;
  /// Kept for the final norm, head and loss.
  std::int64_t head() const;
  /// The same tensor by tensor, the logits' last.
  std::vector<std::int64_t> head_tensors() const;
  /// More at the peak of the loss.
  std::int64_t loss_work() const;
  /// Short-lived tensors of one layer's backward.
  std::vector<std::int64_t> work_tensors() const;
  std::int64_t layer_work() const;

 private:
  std::int64_t logits() const;
  std::int64_t norm_input(std::int64_t elements) const;
  std::int64_t norm_input() const { return norm_input(sizes_.local_elements()); }
  std::vector<std::int64_t> projections() const;
  std::vector<std::int64_t> query_key_value() const;
  std::vector<std::int64_t> mlp() const;
  std::int64_t kept_of_logit() const;
  std::int64_t work_of_logit() const;
  bool composite_norm() const;
  /// A GEMM's saved input.
  std::int64_t gathered_input() const {
    return in_.software.keeps_cut_inputs() ? sizes_.local_bytes() : sizes_.hidden_bytes();
  }

  const StepInputs& in_;
  Sizes sizes_;
  LayerKind kind_;  // of the layers that it speaks of
};

}  // namespace stepcast::workloads
