#include "workloads/memory/activation_memory.hpp"

#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {

/// What a norm keeps: its input, 2 bytes an element; eager RMSNorm keeps the fp32 copy and the
/// normalised 16-bit tensor instead, 4 + 2.
std::int64_t ActivationMemory::norm_input() const {
  const bool composite =
      in_.software.eager() && !in_.software.norm.fused && in_.shape.norm == Norm::rmsnorm;
  const std::int64_t elements = sizes_.local_tokens * sizes_.hidden;
  return (composite ? 4 + sizes_.element : sizes_.element) * elements;
}

/// Two norms and what they feed: inputs of q,k,v and of the MLP; a byte mask of each residual
/// branch's dropout.
std::int64_t ActivationMemory::norms() const {
  const std::int64_t masks = in_.shape.dropout ? 2 * sizes_.local_elements() : 0;
  return 2 * (norm_input() + gathered_input()) + masks;
}

/// q, k, v, o and 4 bytes a row and head of softmax statistics. Eager code keeps k and v repeated
/// for every q head.
std::int64_t ActivationMemory::attention() const {
  const bool repeats = in_.software.eager();
  const std::int64_t kv = repeats ? sizes_.query : sizes_.kv;
  return sizes_.tokens * (sizes_.element * (2 * sizes_.query + 2 * kv) + 4 * sizes_.heads);
}

std::int64_t ActivationMemory::scores() const {
  if (!in_.software.attention.keeps_scores()) return 0;
  const std::int64_t scores = sizes_.heads * sizes_.tokens * in_.batch.sequence;
  // Llama code keeps the softmax's output in fp32 as well (attention_piece.cpp).
  const Fusion fusion = in_.software.fusion;
  const bool fp32 = in_.software.attention.kernel == AttentionKernel::unfused &&
                    fusion != Fusion::compiled && in_.shape.norm == Norm::rmsnorm &&
                    sizes_.element < 4;
  if (fp32 && !in_.shape.dropout) return (sizes_.element + 4) * scores;
  // Dropout keeps the softmax's output, the mask and what it leaves.
  return (in_.shape.dropout ? 2 * sizes_.element + 1 : sizes_.element) * scores;
}

/// GELU: its input and output, 4f. SwiGLU: gate, up, product 6f; eager also silu(gate), 8f;
/// Inductor makes the product again in backward, 4f.
std::int64_t ActivationMemory::mlp() const {
  const std::int64_t f = sizes_.ffn_bytes();
  if (in_.shape.activation == Activation::gelu) return 2 * f;
  switch (in_.software.fusion) {
    case Fusion::eager:
      return 4 * f;
    case Fusion::compiled:
      return 2 * f;
    case Fusion::fused:
    case Fusion::own:
      return 3 * f;
  }
  throw BrokenPromise("unknown fusion");
}

std::int64_t ActivationMemory::layer() const {
  switch (in_.plan.recompute) {
    case Recompute::none:
      return layer_without_recompute();
    case Recompute::selective:
      return layer_without_recompute() - scores();
    case Recompute::full:
      return sizes_.local_bytes();  // the layer's input
  }
  throw BrokenPromise("unknown recompute");
}

/// Final norm and its output; bytes a logit: 16-bit logits 2 and log-softmax 4 (eager; Megatron's
/// softmax 4 in the place of the fp32 copy), 2 where the loss is one kernel.
std::int64_t ActivationMemory::head() const {
  const std::int64_t each = in_.software.loss_is_one_kernel() ? sizes_.element : sizes_.element + 4;
  return norm_input() + gathered_input() + each * logits();
}

/// Bytes a logit at the peak of the loss: eager two fp32 gradients 4 + 4; Megatron works in place
/// and casts 2; one kernel writes the 16-bit gradient 2.
std::int64_t ActivationMemory::loss_work() const {
  if (in_.software.own()) return 0;  // in place
  const bool eager = in_.software.eager() && !in_.software.loss.fused;
  return (eager ? 8 : sizes_.element) * logits();
}

std::int64_t ActivationMemory::logits() const {
  return predicted_positions(in_.shape, in_.batch.sequence) * sizes_.tokens / in_.batch.sequence *
         (in_.software.loss.gathered_logits ? in_.shape.vocab : sizes_.vocab);
}

/// Three tensors of the MLP's width (gradients of gate, up and product) and four of the hidden
/// width, fp32 in eager norms.
std::int64_t ActivationMemory::layer_work() const {
  const std::int64_t width = in_.software.eager() ? 4 : sizes_.element;
  return 3 * sizes_.ffn_bytes() + 4 * width * sizes_.tokens * sizes_.hidden;
}

}  // namespace stepcast::workloads
