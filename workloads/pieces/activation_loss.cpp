// What the head and the loss keep and have at their peak: the rest of ActivationMemory's account.
#include <algorithm>
#include <numeric>

#include "engine/check.hpp"
#include "workloads/pieces/activation_memory.hpp"
#include "workloads/pieces/ends_piece.hpp"
#include "workloads/pieces/mtp_piece.hpp"

namespace stepcast::workloads {

/// Bytes of a logit from its forward to its backward: 16-bit logits 2 and log-softmax 4 (eager),
/// log-softmax alone where the script drops the logits, fp32 logits beside it where the model
/// returns them so; Megatron's softmax 4 in the place of the fp32 copy, the logits being nobody's
/// (core/tensor_parallel/cross_entropy.py at 0.16, read 2026-11); 2 where the loss is one kernel;
/// a gradient in the logits' place. In place:
/// the softmax alone, in the shifted fp32 copy (nanotron tensor_parallel/functional.py,
/// _ShardedCrossEntropy, read 2026-11). Low: the probabilities, in 16 bits, of a cut vocabulary in
/// fp32 (OneFlow auto_mixed_precision_lists.cpp names sparse_softmax_cross_entropy, not its form
/// over ranks; read 2026-11).
std::int64_t ActivationMemory::kept_of_logit() const {
  // What tanh left of logits with a cap, where it is a kernel of its own.
  const bool cap = in_.shape.logit_cap && !in_.software.loss_is_one_kernel();
  return kept_of_loss() + (cap ? sizes_.element : 0);
}

std::int64_t ActivationMemory::kept_of_loss() const {
  switch (in_.software.loss.memory) {
    case LossMemory::kernels:
      if (in_.software.loss_is_one_kernel()) return sizes_.element;
      return in_.software.fused() ? 4 : sizes_.element + 4;
    case LossMemory::dropped:
      return in_.software.loss_is_one_kernel() ? sizes_.element : 4;
    case LossMemory::widened:
      return 8;
    case LossMemory::gradient:
      return sizes_.element;
    case LossMemory::gradient_fp32:
      return 4;
    case LossMemory::in_place:
    case LossMemory::shifted:
      return 4;
    case LossMemory::low:
      return in_.plan.tensor > 1 ? 4 : sizes_.element;
  }
  throw BrokenPromise("unknown memory of a loss");
}

/// And more at its peak: eager two fp32 gradients 4 + 4; Megatron works in place and casts 2; one
/// kernel writes the 16-bit gradient 2. In place: the logits and their fp32 copy until it is
/// shifted. Shifted: fp32 logits beside their copy, and in backward beside it the gradient that the
/// slice of the last position is put into (slice_backward; transformers 4.4x modeling_llama.py and
/// Unsloth's Fast_CrossEntropyLoss, which writes over its input; recalled). Low: logits and
/// then their gradient beside the probabilities.
std::int64_t ActivationMemory::work_of_logit() const {
  if (in_.software.own()) return 0;  // in place
  switch (in_.software.loss.memory) {
    case LossMemory::dropped:
      // Ranks that share the vocabulary: beside the log-softmax a dense gradient of the loss, the
      // exponential and their sum, 4 each (_nll_loss_and_log_softmax_backward of
      // torch/distributed/tensor/parallel/loss.py, recalled).
      if (in_.software.eager() && !in_.software.loss.fused && in_.plan.tensor > 1) return 12;
      [[fallthrough]];
    case LossMemory::kernels:
      return in_.software.eager() && !in_.software.loss.fused ? 8 : sizes_.element;
    case LossMemory::widened:
      return 8;
    case LossMemory::gradient:
      return 0;
    case LossMemory::gradient_fp32:
      return sizes_.element;
    case LossMemory::in_place:
      return sizes_.element + 4;
    case LossMemory::shifted:
      return 4;
    case LossMemory::low:
      return in_.plan.tensor > 1 ? 4 : sizes_.element;
  }
  throw BrokenPromise("unknown memory of a loss");
}

/// Final norm and its output, and the logits; before them those of a module for further tokens:
/// inputs of its norms, of its product of both and of its last norm, and its layer.
std::vector<std::int64_t> ActivationMemory::head_tensors() const {
  std::int64_t weight = sizes_.element * sizes_.vocab * sizes_.hidden;
  if (adapted(in_.shape)) weight = 0;  // the head is frozen
  switch (in_.software.loss.form) {
    case LossForm::whole:
      break;
    case LossForm::chunks:
      return {norm_input(), gathered_input()};
    case LossForm::checkpointed:
      return {norm_input(), gathered_input(), gathered_input()};  // and a copy without padding
    case LossForm::fused_linear:
      return {norm_input(), gathered_input(), weight};  // of its input and weight the gradients
  }
  std::vector<std::int64_t> out{norm_input()};
  if (!adapted(in_.shape)) out.push_back(gathered_input());
  if (in_.shape.mtp_layers > 0) {
    const LayerKind last = mtp_kind(in_.shape, in_.precision);
    for (const std::int64_t bytes :
         {norm_input(), norm_input(), 2 * gathered_input(), ActivationMemory(in_, last).layer(),
          norm_input(), gathered_input(), kept_of_logit() * logits()})
      out.push_back(bytes);
  }
  out.push_back(kept_of_logit() * logits());
  return out;
}

std::int64_t ActivationMemory::head() const {
  const std::vector<std::int64_t> tensors = head_tensors();
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0});
}

/// Part by part: the logits of one; chunks: of each its tokens' hidden states once more and an fp32
/// sum of their gradients, the logits being there in backward. FSDP reduces the head's gradient
/// with the last: until then its sum is whole, in the type of reductions, and beside it comes that
/// of the next chunk, when of its logits these and their gradient are left (torchtitan
/// components/loss.py at 786e26f8, to_accumulated_grad_if_needed of torch/distributed/fsdp);
/// checkpointed: FSDP gathers the head in fp32, and has its gradient so (TRL's chunked_nll,
/// 2026-06); Liger: the head's own input.
std::int64_t ActivationMemory::loss_work() const {
  const LossForm form = in_.software.loss.form;
  if (form == LossForm::whole) return work_of_logit() * logits();
  const std::int64_t one = logits() / loss_parts(in_).count;
  const std::int64_t part = form == LossForm::fused_linear
                                ? sizes_.element * one
                                : (kept_of_logit() + work_of_logit()) * one;
  if (form == LossForm::chunks) {
    const std::int64_t head = in_.sharded() ? sizes_.vocab * sizes_.hidden : 0;
    const bool dropped =
        in_.software.loss.memory == LossMemory::dropped && !in_.software.loss_is_one_kernel();
    const std::int64_t sum = bytes_per_element(in_.precision.gradient_reduce);
    const std::int64_t of_logits = part + (dropped ? sizes_.element * one : 0);
    return std::max(of_logits, sizes_.element * (head + 2 * one)) + sum * head + gathered_input() +
           4 * gathered_input() / sizes_.element;
  }
  if (form == LossForm::fused_linear) return part + gathered_input();
  const std::int64_t wider = in_.sharded() ? 4 - sizes_.element : 0;
  return part + 2 * wider * sizes_.vocab * sizes_.hidden;
}

/// Log-softmax of torch, of logits that the script then drops.
bool ActivationMemory::eager_loss_dropped() const {
  const LossSoftware& loss = in_.software.loss;
  return loss.memory == LossMemory::dropped && loss.form == LossForm::whole &&
         in_.software.eager() && !loss.fused;
}

/// The dense gradient of the loss, then that of log-softmax, in fp32; over a cut vocabulary
/// gradient, exponential and sum.
std::vector<std::int64_t> ActivationMemory::loss_work_tensors() const {
  if (!eager_loss_dropped()) return {loss_work()};
  return std::vector<std::int64_t>(static_cast<std::size_t>(work_of_logit() / 4), 4 * logits());
}

/// 16-bit logits that their fp32 copy is made of, and that are gone before it is shifted
/// (LlamaForCausalLM.forward of transformers 4.45, modeling_llama.py, by copies of it: the same
/// name holds both; read 2026-11).
std::int64_t ActivationMemory::logits_before_copy() const {
  return shifts_copy() ? sizes_.element * logits() : 0;
}

bool ActivationMemory::shifts_copy() const {
  const LossSoftware& loss = in_.software.loss;
  return loss.memory == LossMemory::shifted && loss.form == LossForm::whole;
}

/// Logits, their fp32 copy and, of a cut vocabulary, that less its maximum. The two or three lie
/// before log-softmax: the first gradient takes the fp32 copy's place, the last one finds none that
/// holds it (torch._log_softmax, torch/distributed/tensor/parallel/loss.py; read 2026-11). Shifted:
/// the fp32 copy, which lies before what is shifted.
std::vector<std::int64_t> ActivationMemory::loss_forward_tensors() const {
  if (shifts_copy()) return {4 * logits()};
  if (!eager_loss_dropped()) return {};
  std::vector<std::int64_t> out{sizes_.element * logits(), 4 * logits()};
  if (in_.plan.tensor > 1) out.push_back(4 * logits());
  return out;
}

std::int64_t ActivationMemory::logits() const {
  return predicted_positions(in_.shape, in_.batch.sequence) * sizes_.tokens / in_.batch.sequence *
         (in_.software.loss.gathered_logits ? in_.shape.vocab : sizes_.vocab);
}

}  // namespace stepcast::workloads
