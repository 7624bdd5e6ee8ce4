#include "workloads/pieces/attention_piece.hpp"

#include "workloads/pieces/context_piece.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

bool repeats_kv(const PieceWriter& w) {
  return w.in().software.repeats_kv() && w.sizes().kv_heads < w.sizes().heads;
}

std::int64_t q_bytes(const PieceWriter& w) {
  return w.sizes().element * w.sizes().tokens * w.sizes().query;
}
std::int64_t o_bytes(const PieceWriter& w) {
  return w.sizes().element * w.sizes().tokens * w.sizes().value;
}
std::int64_t k_bytes(const PieceWriter& w) {
  return w.sizes().element * w.sizes().tokens * w.sizes().kv;
}
std::int64_t v_bytes(const PieceWriter& w) {
  return o_bytes(w) * w.sizes().kv_heads / w.sizes().heads;
}

/// Keys that a query sees, on average: all, under a causal mask half, and in a window of w the last
/// w but for the first queries, w - w^2 / 2s.
double keys_of_query(const AttentionPart& part) {
  const auto all = static_cast<double>(part.sequence);
  if (!part.causal) return all;
  if (part.window == 0 || part.window >= part.sequence) return all / 2;
  const auto window = static_cast<double>(part.window);
  return window - window * window / (2 * all);
}

/// FLOPs of d_qk + d_v times two for each query, key that it sees and head (QK^T and PV). Backward
/// five products: QK^T again, dQ and dK, dP and dV.
Kernel attention_kernel(const PieceWriter& w, const std::string& name, KernelFamily family,
                        const AttentionPart& part) {
  Kernel kernel;
  kernel.name = name;
  kernel.family = family;
  kernel.dtype = w.in().precision.compute;
  kernel.batch = part.batch;
  kernel.heads = part.heads;
  kernel.kv_heads = part.kv_heads;
  kernel.sequence = part.sequence;
  const std::int64_t d = score_width(w.in().shape), v = value_width(w.in().shape);
  kernel.head_dim = d;
  kernel.value_dim = v == d ? 0 : v;
  kernel.causal = part.causal;
  kernel.window = part.window < part.sequence ? part.window : 0;
  const std::int64_t products = family == attention_forward ? d + v : 3 * d + 2 * v;
  kernel.flops = Flops(2.0 * static_cast<double>(part.batch * part.rows) * keys_of_query(part) *
                       static_cast<double>(part.heads * products));
  return kernel;
}

/// The log-sum-exp of every row of scores: 4 b a s bytes.
std::int64_t row_statistics_bytes(const PieceWriter& w) {
  return 4 * w.sizes().tokens * w.sizes().heads;
}

/// One kernel: reads q, k, v, writes o and the row statistics.
void flash_forward(PieceWriter& w, const AttentionPart& part) {
  Kernel kernel = attention_kernel(w, "layer.attention.core.forward", attention_forward, part);
  kernel.bytes = Bytes(query_bytes(w) + key_bytes(w) + value_bytes(w) + output_bytes(w) +
                       row_statistics_bytes(w));
  w.fill(output_bytes(w));
  w.kernel(std::move(kernel));
}

/// One call of three kernels (flash-attention v2.5.0 flash_bwd_launch_template.h:15-97): row dot of
/// dO and O and clearing of the fp32 dQ; the main kernel (reads q, k, v, dO, statistics, adds to dQ
/// in fp32, writes dK and dV for every q head); dQ converted. Published times are of the whole
/// call, so it is one kernel here, with the bytes of all three. Grouped heads: dK, dV summed after.
void flash_backward(PieceWriter& w, const AttentionPart& part) {
  const std::int64_t fp32_q = 4 * w.sizes().tokens * w.sizes().query;
  const std::int64_t kv_read = key_bytes(w) + value_bytes(w);
  Kernel kernel = attention_kernel(w, "layer.attention.core.backward", attention_backward, part);
  if (w.own()) {  // reads q, k, v, o, dO and the statistics, writes dQ, dK, dV, groups summed
    kernel.bytes =
        Bytes(2 * (q_bytes(w) + o_bytes(w) + k_bytes(w) + v_bytes(w)) + row_statistics_bytes(w));
    return w.kernel(std::move(kernel));
  }
  kernel.bytes =
      Bytes(3 * q_bytes(w) + 4 * o_bytes(w) + kv_read + row_statistics_bytes(w) + 4 * fp32_q);
  w.fill(q_bytes(w) + kv_read);
  w.kernel(std::move(kernel));
  if (w.sizes().kv_heads < w.sizes().heads)  // per group: read one per q head, write one
    for (const char* name : {"k", "v"})
      w.pass(std::string("layer.attention.core.backward.sum_") + name, reduction,
             q_bytes(w) + k_bytes(w));
}

std::int64_t score_bytes(const PieceWriter& w) {  // S = 2 b a s^2 / t
  return w.sizes().element * w.sizes().heads * w.sizes().tokens * w.in().batch.sequence;
}

/// Attention out of a framework's own operators.
bool plain(const PieceWriter& w) {
  return w.in().software.attention.kernel == AttentionKernel::unfused;
}
/// Whether scale and mask are kernels of their own.
bool separate_softmax(const PieceWriter& w) { return plain(w) && !w.compiled(); }

/// Llama code takes the softmax in fp32 and casts its result (Hugging Face modeling_llama.py, Meta
/// llama model.py, 2023); GPT and BERT code leaves it in 16 bits.
bool softmax_in_fp32(const PieceWriter& w) {
  return separate_softmax(w) && w.in().shape.norm == Norm::rmsnorm && w.sizes().element < 4;
}
std::int64_t cast_bytes(const PieceWriter& w) {  // one of S to fp32 or back
  return score_bytes(w) / w.sizes().element * (w.sizes().element + 4);
}

/// torch.matmul takes batches of one stride alone: heads are copied out of q, k and v, and their
/// gradients back (ATen matmul: expand, reshape, bmm; TensorFlow transposes). Megatron lays q, k
/// and v out so that no copy is needed.
void copy_heads(PieceWriter& w, const std::string& suffix) {
  if (!plain(w)) return;
  for (const auto& [name, bytes] :
       {std::pair{"q", query_bytes(w)}, {"k", key_bytes(w)}, {"v", value_bytes(w)}})
    w.pass(std::string("layer.attention.core.heads_") + name + suffix, copy, 2 * bytes);
}

/// Fused scale-mask-softmax: 2S; eager: scale 2S, mask 2S, upcast and softmax and cast in one
/// kernel 2S. Dropout: reads S, writes S and a byte mask, 2.5S; a compiler makes it in the
/// softmax's kernel, which then writes both: 3.5S.
void softmax_forward(PieceWriter& w) {
  const std::int64_t s = score_bytes(w);
  const bool dropout = w.in().shape.dropout;
  if (separate_softmax(w)) {
    w.pass("layer.attention.core.scale", pointwise, 2 * s);
    w.pass("layer.attention.core.mask", pointwise, 2 * s);
  }
  if (dropout && w.compiled()) return w.pass("layer.attention.core.softmax", softmax, 7 * s / 2);
  if (softmax_in_fp32(w)) {  // reads e, writes 4 bytes an element; cast 4 + e
    w.pass("layer.attention.core.softmax", softmax, cast_bytes(w));
    w.pass("layer.attention.core.softmax.cast", pointwise, cast_bytes(w));
  } else {
    w.pass("layer.attention.core.softmax", softmax, 2 * s);
  }
  if (dropout) w.pass("layer.attention.core.dropout", pointwise, 5 * s / 2);
}

/// Softmax backward 3S; dropout backward 2.5S before it, compiled 3.5S together; eager mask and
/// scale 2S each.
void softmax_backward(PieceWriter& w) {
  const std::int64_t s = score_bytes(w);
  const bool dropout = w.in().shape.dropout;
  if (dropout && w.compiled())
    return w.pass("layer.attention.core.softmax.backward", softmax, 7 * s / 2);
  if (dropout) w.pass("layer.attention.core.dropout.backward", pointwise, 5 * s / 2);
  if (softmax_in_fp32(w)) {  // cast e + 4; reads gradient and result in fp32, writes e
    w.pass("layer.attention.core.softmax.cast.backward", pointwise, cast_bytes(w));
    w.pass("layer.attention.core.softmax.backward", softmax, 2 * cast_bytes(w) - s);
  } else {
    w.pass("layer.attention.core.softmax.backward", softmax, 3 * s);
  }
  if (separate_softmax(w)) {
    w.pass("layer.attention.core.mask.backward", pointwise, 2 * s);
    w.pass("layer.attention.core.scale.backward", pointwise, 2 * s);
  }
}

/// QK^T, softmax, PV with the scores in memory. The causal mask halves no product.
void unfused_forward(PieceWriter& w, const AttentionPart& part) {
  const std::int64_t r = part.rows, s = part.sequence;
  const std::int64_t d = score_width(w.in().shape), v = value_width(w.in().shape);
  const std::int64_t count = part.batch * part.heads;
  copy_heads(w, "");
  w.batched_gemm("layer.attention.core.scores.forward", r, s, d, count);
  softmax_forward(w);
  w.batched_gemm("layer.attention.core.values.forward", r, v, s, count);
  w.pass("layer.attention.core.contiguous", copy, 2 * o_bytes(w));
}

/// Two products for each of the two.
void unfused_backward(PieceWriter& w, const AttentionPart& part) {
  const std::int64_t r = part.rows, s = part.sequence;
  const std::int64_t d = score_width(w.in().shape), v = value_width(w.in().shape);
  const std::int64_t count = part.batch * part.heads;
  w.pass("layer.attention.core.contiguous.backward", copy, 2 * o_bytes(w));
  w.batched_gemm("layer.attention.core.values.dgrad", r, s, v, count);
  w.batched_gemm("layer.attention.core.values.vgrad", s, v, r, count);
  softmax_backward(w);
  w.batched_gemm("layer.attention.core.scores.qgrad", r, d, s, count);
  w.batched_gemm("layer.attention.core.scores.kgrad", s, d, r, count);
  copy_heads(w, ".backward");
}

}  // namespace

bool keeps_scores(const PieceWriter& w) { return w.in().software.attention.keeps_scores(); }
std::int64_t query_bytes(const PieceWriter& w) { return q_bytes(w); }
std::int64_t key_bytes(const PieceWriter& w) { return repeats_kv(w) ? q_bytes(w) : k_bytes(w); }
std::int64_t value_bytes(const PieceWriter& w) { return repeats_kv(w) ? o_bytes(w) : v_bytes(w); }
std::int64_t output_bytes(const PieceWriter& w) { return o_bytes(w); }

AttentionPart whole_attention(const PieceWriter& w) {
  const std::int64_t s = w.in().batch.sequence;
  return {.batch = w.in().batch.micro_batch,
          .heads = w.sizes().heads,
          .kv_heads = repeats_kv(w) ? w.sizes().heads : w.sizes().kv_heads,
          .rows = s,
          .sequence = s,
          .causal = !masked(w.in().shape),
          .window = w.kind().mixer == Mixer::window ? w.in().shape.window : 0};
}

namespace {

bool sparse(const PieceWriter& w) { return w.in().shape.index.heads > 0; }

/// Each row against the latent keys that the index chose, which all heads share: scores over rank
/// and rotary part, values over the rank; the products up are those of the projections (DeepSeek
/// FlashMLA at 9241ae3, sparse prefill, read 2026-08).
void sparse_attention(PieceWriter& w, const AttentionPart& part, bool backward) {
  const LatentShape& l = w.in().shape.latent;
  AttentionPart chosen = part;
  chosen.window = w.in().shape.index.top;
  const std::int64_t d = l.kv_rank + l.rope, v = l.kv_rank;
  Kernel kernel;
  kernel.name = std::string("layer.attention.core.") + (backward ? "backward" : "forward");
  kernel.family = backward ? sparse_backward : sparse_forward;
  kernel.dtype = w.in().precision.compute;
  kernel.batch = part.batch;
  kernel.heads = part.heads;
  kernel.kv_heads = 1;
  kernel.sequence = part.sequence;
  kernel.head_dim = d;
  kernel.value_dim = v;
  kernel.window = chosen.window < part.sequence ? chosen.window : 0;
  const std::int64_t products = backward ? 3 * d + 2 * v : d + v;
  kernel.flops = Flops(2.0 * static_cast<double>(part.batch * part.rows) * keys_of_query(chosen) *
                       static_cast<double>(part.heads * products));
  const std::int64_t rows = w.sizes().element * w.sizes().tokens;
  kernel.bytes = Bytes((backward ? 2 : 1) * rows * (part.heads * (d + v) + d));
  w.kernel(std::move(kernel));
}

}  // namespace

void write_attention_part_forward(PieceWriter& w, const AttentionPart& part) {
  if (sparse(w)) return sparse_attention(w, part, false);
  if (keeps_scores(w))
    unfused_forward(w, part);
  else
    flash_forward(w, part);
}

void write_attention_part_backward(PieceWriter& w, const AttentionPart& part) {
  if (sparse(w)) return sparse_attention(w, part, true);
  if (keeps_scores(w))
    unfused_backward(w, part);
  else
    flash_backward(w, part);
}

// Eager: upcast 2+4, complex multiply 4+4, cast 4+2 bytes an element, 3 kernels each for q and k.
// Compiled, fused: one kernel each, 2+2.
void write_rope(PieceWriter& w, const std::string& suffix) {
  if (!w.in().shape.rope) return;
  const std::int64_t e = w.sizes().element;
  for (const auto& [name, width] : {std::pair{"q", w.sizes().query}, {"k", w.sizes().kv}}) {
    const std::string prefix = std::string("layer.attention.rope.") + name + suffix;
    const std::int64_t elements = w.sizes().tokens * width;
    if (w.eager()) {
      w.pass(prefix + ".upcast", rope, (e + 4) * elements);
      w.pass_fp32(prefix + ".multiply", rope, 8 * elements);
      w.pass(prefix + ".cast", rope, (4 + e) * elements);
    } else {
      w.pass(prefix, rope, 2 * e * elements);
    }
  }
}

void write_attention_core_forward(PieceWriter& w) {
  w.module();
  w.fork_random();
  if (repeats_kv(w))  // read one per group, write one per q head
    for (const char* name : {"k", "v"})
      w.pass(std::string("layer.attention.repeat_") + name, copy, k_bytes(w) + q_bytes(w));
  if (w.saves(o_bytes(w))) {
    w.saves(4 * w.sizes().tokens * w.sizes().heads);  // of the softmax, a number a row and head
    return;
  }
  if (w.in().plan.context > 1) return write_context_attention_forward(w);
  write_attention_part_forward(w, whole_attention(w));
}

void write_attention_core_backward(PieceWriter& w) {
  w.module();
  if (w.in().plan.context > 1) return write_context_attention_backward(w);
  write_attention_part_backward(w, whole_attention(w));
}

}  // namespace stepcast::workloads
