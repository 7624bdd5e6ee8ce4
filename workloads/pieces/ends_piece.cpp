#include "workloads/pieces/ends_piece.hpp"

#include <algorithm>
#include <bit>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

#include "workloads/pieces/linear_piece.hpp"
#include "workloads/pieces/masked_head_piece.hpp"
#include "workloads/pieces/mtp_piece.hpp"
#include "workloads/pieces/norm_piece.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

bool predicts_further(const StepInputs& in) { return in.shape.mtp_layers > 0; }

bool has_tensor(const ParameterTensors& unit, const std::string& name) {
  return std::any_of(unit.begin(), unit.end(),
                     [&](const ParameterTensor& t) { return t.name == name; });
}

/// The tensor ranks put their logits together and compute the same loss each.
bool gathers_logits(const PieceWriter& w) {
  return w.split() && w.in().software.loss.gathered_logits;
}

std::int64_t logits(const PieceWriter& w) {
  return w.sizes().tokens * (gathers_logits(w) ? w.in().shape.vocab : w.sizes().vocab);
}

/// One number per token over the tensor group, fp32: the row maximum, the target's logit, the sum
/// of exponentials (Megatron cross_entropy.py:130-157); the fused one joins the last two.
void loss_collectives(PieceWriter& w) {
  if (!w.split() || gathers_logits(w)) return;
  const std::int64_t column = 4 * w.sizes().tokens;
  w.collective("loss.max", CollectiveKind::all_reduce, Dtype::fp32, column);
  if (w.in().software.loss_is_one_kernel()) {
    w.collective("loss.sums", CollectiveKind::all_reduce, Dtype::fp32, 2 * column);
    return;
  }
  w.collective("loss.target", CollectiveKind::all_reduce, Dtype::fp32, column);
  w.collective("loss.sum", CollectiveKind::all_reduce, Dtype::fp32, column);
}

/// A tanh of the logits over its cap, times it: one kernel, or three of torch; none where the
/// loss's kernel has it (Liger, torch.compile).
void cap_logits(PieceWriter& w) {
  if (!w.in().shape.logit_cap || w.in().software.loss_is_one_kernel()) return;
  for (int i = 0; i < (w.fused() ? 1 : 3); ++i)
    w.pass("loss.cap", pointwise, 2 * w.sizes().element * logits(w));
}
/// tanh reads its output and the gradient, the others the gradient alone.
void cap_logits_backward(PieceWriter& w) {
  if (!w.in().shape.logit_cap || w.in().software.loss_is_one_kernel()) return;
  w.pass("loss.cap.backward", pointwise, 3 * w.sizes().element * logits(w));
  for (int i = 1; i < (w.fused() ? 1 : 3); ++i)
    w.pass("loss.cap.scale.backward", pointwise, 2 * w.sizes().element * logits(w));
}

/// Bytes a logit. Eager: cast 2+4, log-softmax 4+4, then the loss of T numbers. Compiled: two reads
/// of the 16-bit logits (maximum and sum, then the target). Megatron (not its fused option): cast
/// 2+4, maximum 4, subtract 4+4, exponential 4+4, sum 4, divide 4+4.
void loss_forward(PieceWriter& w) {
  const std::int64_t n = logits(w), e = w.sizes().element, row = w.sizes().tokens;
  cap_logits(w);
  if (gathers_logits(w)) {  // rank by rank, then side by side: read and written once more
    w.collective("loss.gather", CollectiveKind::all_gather, w.in().precision.compute, e * n);
    w.pass("loss.gather.concatenate", copy, 2 * e * n);
  }
  if (w.in().software.loss_is_one_kernel()) {
    w.pass("loss.forward", softmax, 2 * e * n);
  } else {
    w.pass("loss.upcast", pointwise, (e + 4) * n);
    if (w.fused()) {
      w.pass_fp32("loss.maximum", reduction, 4 * n);
      w.pass_fp32("loss.subtract", pointwise, 8 * n);
      w.pass_fp32("loss.exponential", pointwise, 8 * n);
      w.pass_fp32("loss.sum", reduction, 4 * n);
      w.pass_fp32("loss.divide", pointwise, 8 * n);
    } else {
      w.pass_fp32("loss.log_softmax", softmax, 8 * n);
      w.pass_fp32("loss.nll", reduction, 16 * row);
    }
  }
  loss_collectives(w);
}

/// Bytes a logit. Eager: zero fill 4 and scatter of T numbers, log-softmax backward 4+4+4, cast
/// 4+2. Compiled: 2+2. Megatron: softmax minus target on T numbers, scale in place 4+4, cast 4+2.
void loss_backward(PieceWriter& w) {
  const std::int64_t n = logits(w), e = w.sizes().element, row = w.sizes().tokens;
  if (w.in().software.loss_is_one_kernel()) return w.pass("loss.backward", softmax, 2 * e * n);
  if (w.fused()) {
    w.pass_fp32("loss.backward.target", pointwise, 12 * row);
    w.pass_fp32("loss.backward.scale", pointwise, 8 * n);
  } else {
    w.pass_fp32("loss.backward.zero", pointwise, 4 * n);
    w.pass_fp32("loss.backward.nll", pointwise, 16 * row);
    w.pass_fp32("loss.backward.log_softmax", softmax, 12 * n);
  }
  w.pass("loss.backward.cast", pointwise, (4 + e) * n);
  cap_logits_backward(w);
  if (gathers_logits(w))  // the rank's own columns
    w.pass("loss.gather.backward", copy, 2 * e * w.sizes().tokens * w.sizes().vocab);
}

Linear head_linear(const PieceWriter& w) {
  return {"head", "head", w.sizes().hidden, w.sizes().vocab, false};
}

/// The weight's gradient is complete later: tied on one stage, it belongs to the embedding; with
/// modules for further tokens the head is used again. Autograd sums the two gradients: read two,
/// write one. The trainer's own kernels add to the head's.
void write_shared_head_backward(PieceWriter& w, KernelTable& table) {
  PieceWriter head(w.in(), table);
  const ParameterTensors weight{{"head", w.sizes().vocab * w.sizes().hidden, true, false}};
  write_column_backward(head, "head", weight, {head_linear(w)});
  Piece piece = head.take();
  std::erase_if(piece, [](const Action& a) { return a.kind == Action::Kind::gradient; });
  w.append(piece);
  if (!w.own() && !w.frozen())
    w.pass("head.tied_sum", pointwise, 3 * w.sizes().element * weight[0].elements);
}

/// A part of a micro-batch by itself.
Batch batch_of_part(const StepInputs& in, const LossParts& parts) {
  return {1, in.batch.micro_batches, parts.tokens * in.plan.context};
}

/// Forward of head and loss over one part.
void part_forward(PieceWriter& w) {
  write_column_forward(w, "head", {head_linear(w)});
  if (w.in().software.loss.form != LossForm::fused_linear) return loss_forward(w);
  // Read twice, and its gradient written in its place (Liger ops/cross_entropy.py, 2026).
  w.pass("loss.fused", softmax, 3 * w.sizes().element * logits(w));
}

/// Gradients of a part; that of the weight is added to the others' (read two, write one).
void part_backward(PieceWriter& w, KernelTable& table) {
  if (w.in().software.loss.form != LossForm::fused_linear) loss_backward(w);
  write_shared_head_backward(w, table);
}

template <class Write>
void for_each_part(PieceWriter& whole, KernelTable& table, bool python, Write write) {
  const StepInputs& in = whole.in();
  const LossParts parts = loss_parts(in);
  const Batch batch = batch_of_part(in, parts);
  const StepInputs part{in.shape, in.plan, batch, in.precision, in.software};
  PieceWriter w(part, table);
  w.from_python(python);
  write(w);
  const Piece piece = w.take();
  for (std::int64_t i = 0; i < parts.count; ++i) whole.append(piece);
}

/// What forward has of a loss that goes over parts.
void parts_forward(PieceWriter& w, KernelTable& table) {
  switch (w.in().software.loss.form) {
    case LossForm::whole:
      throw BrokenPromise("a loss in parts");
    case LossForm::chunks:
      return;  // each part's backward follows its forward
    case LossForm::checkpointed:
      return for_each_part(w, table, true, part_forward);
    case LossForm::fused_linear:
      return for_each_part(w, table, true, [&](PieceWriter& part) {
        part_forward(part);
        part_backward(part, table);
      });
  }
}

void parts_backward(PieceWriter& w, KernelTable& table, const ParameterTensors& unit) {
  if (w.in().software.loss.form == LossForm::fused_linear)
    w.host_wait();  // it asks whether the gradient that comes in is 1 (torch.equal)
  else
    for_each_part(w, table, false, [&](PieceWriter& part) {
      part.from_python(true);
      part_forward(part);
      part.from_python(false);
      part_backward(part, table);
    });
  if (has_tensor(unit, "head") && !w.frozen()) w.gradient(unit, "head");
}

}  // namespace

LossParts loss_parts(const StepInputs& in) {
  const Sizes sizes(in);
  const LossSoftware& loss = in.software.loss;
  const auto parts_of = [&](std::int64_t tokens) {
    const std::int64_t size =
        std::min(sizes.tokens, ceil_div(tokens, in.plan.tensor) * in.plan.tensor);
    return LossParts{ceil_div(sizes.tokens, size), size};
  };
  switch (loss.form) {
    case LossForm::whole:
      return {1, sizes.tokens};
    case LossForm::chunks:
      return parts_of(ceil_div(sizes.tokens, loss.chunks));
    case LossForm::checkpointed:
      return parts_of(loss.chunk_tokens);
    case LossForm::fused_linear:
      return parts_of(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(
          ceil_div(sizes.tokens, ceil_div(in.shape.vocab, in.shape.hidden))))));
  }
  throw BrokenPromise("unknown form of a loss");
}

Piece embedding_forward(const StepInputs& in, KernelTable& table) {
  PieceWriter w(in, table);
  w.from_python(true);
  const std::int64_t a = w.sizes().hidden_bytes(), row = w.sizes().tokens;
  // Token numbers (8 bytes, the trainer's 4) and one row of the table read per token, one row
  // written. The trainer's kernel leaves zeros where another rank has the row.
  if (w.split() && !w.own()) w.pass("embedding.mask", pointwise, 3 * 8 * row);
  w.pass("embedding.forward", embedding, 2 * a + (w.own() ? 4 : 8) * row);
  if (w.split() && !w.own()) w.pass("embedding.mask_rows", pointwise, 2 * a);
  if (learned_positions(in.shape)) w.pass("embedding.positions", pointwise, 3 * a);
  if (masked(in.shape)) {
    w.pass("embedding.segments", pointwise, 3 * a);
    write_norm_forward(w, "embedding.norm", false);
  }
  if (w.sequence_parallel())
    w.reduce_scatter_hidden("embedding.forward");
  else if (w.split())
    w.all_reduce_hidden("embedding.forward");
  // A mask of a byte an element: read, write, 2.5A.
  if (in.shape.dropout)
    w.pass("embedding.dropout", pointwise,
           2 * w.sizes().local_bytes() + w.sizes().local_elements());
  return w.take();
}

Piece embedding_backward(const StepInputs& in, KernelTable& table, const ParameterTensors& unit) {
  PieceWriter w(in, table);
  if (w.frozen()) return {};  // nothing before the first adapter has a gradient
  const std::int64_t a = w.sizes().hidden_bytes();
  if (in.shape.dropout)
    w.pass("embedding.dropout.backward", pointwise,
           2 * w.sizes().local_bytes() + w.sizes().local_elements());
  if (w.sequence_parallel()) w.all_gather_hidden("embedding.backward");
  if (masked(in.shape)) {
    write_norm_backward(w, "embedding.norm", unit, "embedding.norm", false);
    w.pass("embedding.segments.backward", reduction, a);
    w.gradient(unit, "segments");
  }
  if (learned_positions(in.shape)) {
    // The sum over the batch of position rows: reads A, writes s h.
    w.pass("embedding.positions.backward", reduction,
           a + w.sizes().element * in.batch.sequence * w.sizes().hidden);
    w.gradient(unit, "positions");
  }
  // torch: zero the dense gradient of V h / t, then read every row and add it (read and write).
  const bool adds_to_head = w.own() && in.shape.tied_embeddings && in.plan.pipeline == 1;
  if (!adds_to_head)
    w.pass("embedding.backward.zero", pointwise,
           w.sizes().element * w.sizes().vocab * w.sizes().hidden);
  w.pass("embedding.backward", embedding, 3 * a);
  w.gradient(unit, "embedding");
  return w.take();
}

Piece head_forward(const StepInputs& whole, KernelTable& table) {
  const Batch batch = predicted_batch(whole);
  const StepInputs in{whole.shape, whole.plan, batch, whole.precision, whole.software};
  PieceWriter w(in, table);
  w.from_python(true);
  if (masked(in.shape))
    write_masked_transform_forward(w);
  else
    write_norm_forward(w, "final_norm", false);
  if (in.software.loss.form != LossForm::whole) {
    parts_forward(w, table);
    return w.take();
  }
  if (predicts_further(in)) {
    w.append(mtp_forward(in, table));
    write_column_forward(w, "head", {head_linear(w)});
    loss_forward(w);
  }
  write_column_forward(w, "head", {head_linear(w)});
  loss_forward(w);
  if (masked(in.shape)) write_pooler_forward(w);
  return w.take();
}

Piece head_backward(const StepInputs& whole, KernelTable& table, const ParameterTensors& unit) {
  const Batch batch = predicted_batch(whole);
  const StepInputs in{whole.shape, whole.plan, batch, whole.precision, whole.software};
  PieceWriter w(in, table);
  if (in.software.loss.form != LossForm::whole) {
    parts_backward(w, table, unit);
    write_norm_backward(w, "final_norm", unit, "final_norm", false);
    return w.take();
  }
  if (masked(in.shape)) write_pooler_backward(w, unit);
  loss_backward(w);
  if (predicts_further(in)) {
    write_shared_head_backward(w, table);
    loss_backward(w);
  }
  if (has_tensor(unit, "head"))
    write_column_backward(w, "head", unit, {head_linear(w)});
  else
    write_shared_head_backward(w, table);
  if (predicts_further(in)) w.append(mtp_backward(in, table, unit));
  if (masked(in.shape))
    write_masked_transform_backward(w, unit, Sizes(whole).hidden_bytes());
  else
    write_norm_backward(w, "final_norm", unit, "final_norm", false);
  return w.take();
}

}  // namespace stepcast::workloads
