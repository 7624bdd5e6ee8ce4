// Bytes of activations that autograd keeps from forward to backward, for one micro-batch on one
// rank: per layer, for the head and loss. The tensors that each style of software saves.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/pieces/expert_sizes.hpp"
#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

class ActivationMemory {
 public:
  explicit ActivationMemory(const StepInputs& in, LayerKind kind = {})
      : layer_(in, kind), in_(layer_.get()), sizes_(in_), kind_(kind) {
    if (kind.experts()) experts_.emplace(in_);
  }

  /// The tensors that a layer keeps without recompute but for its scores, in the order of forward:
  /// those of attention's half, then those of the MLP's.
  std::vector<std::int64_t> layer_tensors() const;
  std::vector<std::int64_t> attention_tensors() const;
  std::vector<std::int64_t> mlp_tensors() const;
  /// What is there until a half is over where nothing is kept for backward: what the norm feeds. A
  /// norm's own copies are gone when it returns, and its input is the layer's or the half's before.
  std::vector<std::int64_t> attention_alone_tensors() const;
  std::vector<std::int64_t> mlp_alone_tensors() const;
  std::int64_t layer_without_recompute() const;
  /// Kept per layer under the plan's recompute.
  std::int64_t layer() const;
  /// By operators: the tensors that a layer keeps; those of layer_tensors() that backward makes.
  std::vector<std::int64_t> operator_tensors() const;
  std::vector<std::int64_t> tensors_again() const;
  /// What the plan offloads of the layer at a place of its part, counted from 0; but the last
  /// layer's of a part stays.
  std::int64_t offloaded_bytes(std::int64_t place) const;
  /// The score matrix of unfused attention, S = 2 b a s^2 / t, 2.5 S with dropout; 0 for flash
  /// kernels.
  std::int64_t scores() const;
  /// Gradients of the outputs of a layer's products: kept for weight gradients that come later.
  std::int64_t output_gradients() const;
  /// Kept for the final norm, head and loss.
  std::int64_t head() const;
  /// The same tensor by tensor, the logits' last.
  std::vector<std::int64_t> head_tensors() const;
  /// More at the peak of the loss.
  std::int64_t loss_work() const;
  /// The same tensor by tensor; and what forward makes before the logits that it keeps, and frees
  /// when they are there: where tensors of this size lie decides what is reserved.
  std::vector<std::int64_t> loss_work_tensors() const;
  std::int64_t logits_before_copy() const;
  std::vector<std::int64_t> loss_forward_tensors() const;
  /// Short-lived tensors of one layer's backward in the MLP's half, beside all that the layer has
  /// kept, among them those of parts that run again; then in attention's, beside its own; and of
  /// the layer's forward.
  std::vector<std::int64_t> work_tensors() const;
  std::vector<std::int64_t> attention_work_tensors() const;
  std::vector<std::int64_t> forward_work_tensors() const;

 private:
  std::int64_t logits() const;
  std::int64_t norm_input(std::int64_t elements) const;
  std::int64_t norm_input() const { return norm_input(sizes_.local_elements()); }
  std::vector<std::int64_t> projections() const;
  std::vector<std::int64_t> core_tensors() const;
  std::vector<std::int64_t> mixer_tensors() const;
  std::vector<std::int64_t> query_key_value() const;
  std::vector<std::int64_t> mlp() const;
  /// Whether a product of `targets` reads its input again in backward: for its weight's gradient,
  /// or for that of an adapter beside it.
  bool reads_again(SetOf<LoraTarget> targets) const;
  std::vector<std::int64_t> adapters() const;
  std::int64_t wide_weight() const;
  bool keeps_quantized() const;
  /// A product's saved input of the hidden width in 16 bits.
  std::int64_t gathered_input() const {
    return in_.software.keeps_cut_inputs() ? sizes_.local_bytes() : sizes_.hidden_bytes();
  }
  /// A product's saved input of so many elements; of a row-parallel or a column-parallel one.
  std::int64_t kept_input(std::int64_t elements) const;
  std::int64_t column_input(std::int64_t width) const;
  std::int64_t row_input(std::int64_t width) const;
  /// Of the MLP's half of the layer, what is kept, and what only its backward has.
  struct Half {
    std::vector<std::int64_t> kept, again;
  };
  Half mlp_half() const;
  /// Rows are weighed in fp32 when they are back, and kept so.
  bool weighs_wide() const;
  Half expert_half() const;
  std::vector<std::int64_t> operator_norms() const;
  bool recomputes(LayerModule module) const { return in_.plan.recompute_modules.has(module); }
  std::int64_t dropout_mask() const;
  std::int64_t kept_of_logit() const;
  std::int64_t kept_of_loss() const;
  std::int64_t work_of_logit() const;
  bool shifts_copy() const;
  bool eager_loss_dropped() const;
  bool composite_norm() const;
  LayerInputs layer_;
  StepInputs in_;  // the layer's
  Sizes sizes_;
  LayerKind kind_;  // of the layers that it speaks of
  std::optional<ExpertSizes> experts_;
};

}  // namespace stepcast::workloads
