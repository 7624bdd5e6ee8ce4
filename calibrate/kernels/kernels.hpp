// The GPU kernels of ours, as plain functions: device pointers, sizes, a stream. calibrate times
// them, the trainer runs them. Each puts its work on the stream and returns; LaunchError when it
// cannot. Tensors are contiguous and row-major; sums run in fp32. No CUDA header is needed here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

struct CUstream_st;
typedef struct CUstream_st* cudaStream_t;  // as cuda_runtime_api.h declares it

namespace stepcast::calibrate::cuda_kernels {

enum class ElementType : std::uint8_t { bf16, fp16, fp32 };
std::size_t bytes_of(ElementType type);

/// A launch that CUDA refused: "attention_forward: too many resources requested for launch".
class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// ---- Attention (cuda_flash_*.cu). O = softmax(scale Q K^T) V per head; a query sees the keys up
// to its own position if causal. Layout [batch, sequence, heads, head_dim]; K and V have kv_heads,
// query head h reads head h / (heads / kv_heads). Pointers are 16-byte aligned.

struct AttentionShape {
  ElementType type = ElementType::bf16;
  std::int64_t batch = 0, sequence = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = true;
  float scale = 0.0F;  // 1 / sqrt(head_dim)
};

enum class Pass : std::uint8_t { forward, backward };

/// Why the current GPU cannot run this shape; nothing if it can.
std::optional<std::string> attention_obstacle(const AttentionShape& shape, Pass pass);

/// Scratch memory of attention_backward; needs no initial value.
std::size_t attention_workspace_bytes(const AttentionShape& shape);

/// `lse`: ln sum exp of each row's scaled scores, fp32 [batch, heads, sequence].
void attention_forward(const AttentionShape& shape, const void* q, const void* k, const void* v,
                       void* o, float* lse, cudaStream_t stream);

struct AttentionBackward {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr, *d_o = nullptr;
  const float* lse = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  void* workspace = nullptr;
};
/// dQ is summed by fp32 atomics: its last bits differ from run to run.
void attention_backward(const AttentionShape& shape, const AttentionBackward& tensors,
                        cudaStream_t stream);

// ---- Norms (norm.cu), one per row of x [rows, width].

struct Rows {
  ElementType type = ElementType::bf16;
  std::int64_t rows = 0, width = 0;
};

/// y = x * inverse * weight, inverse = 1 / sqrt(mean(x^2) + epsilon), kept in fp32 [rows].
void rmsnorm_forward(const Rows& shape, const void* x, const void* weight, float epsilon, void* y,
                     float* inverse, cudaStream_t stream);
/// y = (x - mean) * inverse * weight + bias, inverse = 1 / sqrt(var + epsilon).
void layernorm_forward(const Rows& shape, const void* x, const void* weight, const void* bias,
                       float epsilon, void* y, float* mean, float* inverse, cudaStream_t stream);

struct NormBackward {
  const void *x = nullptr, *weight = nullptr, *dy = nullptr;
  const float *mean = nullptr, *inverse = nullptr;  // mean: LayerNorm alone
  void* dx = nullptr;
  float *dweight = nullptr, *dbias = nullptr;  // fp32 [width], overwritten; dbias: LayerNorm alone
  float* workspace = nullptr;                  // norm_workspace_bytes
};
std::size_t norm_workspace_bytes(const Rows& shape);
void rmsnorm_backward(const Rows& shape, const NormBackward& tensors, cudaStream_t stream);
void layernorm_backward(const Rows& shape, const NormBackward& tensors, cudaStream_t stream);

// ---- Element by element (pointwise.cu).

/// The two inputs of SwiGLU, or their gradients: rows of `width` elements that begin `stride`
/// elements apart.
template <class Pointer>
struct GateUp {
  Pointer gate = nullptr, up = nullptr;
  std::int64_t stride = 0;
};
/// Side by side in rows of 2 width: gate, then up.
GateUp<const void*> side_by_side(const Rows& shape, const void* gate_up);
GateUp<void*> side_by_side(const Rows& shape, void* gate_up);

/// y [rows, width] = silu(gate) * up.
void swiglu_forward(const Rows& shape, const GateUp<const void*>& x, void* y, cudaStream_t stream);
void swiglu_backward(const Rows& shape, const GateUp<const void*>& x, const void* dy,
                     const GateUp<void*>& dx, cudaStream_t stream);
/// GELU by tanh, as GPT-2 has it.
void gelu_forward(ElementType type, std::int64_t elements, const void* x, void* y,
                  cudaStream_t stream);
void gelu_backward(ElementType type, std::int64_t elements, const void* x, const void* dy, void* dx,
                   cudaStream_t stream);
/// y = a + b; y may be a.
void residual_add(ElementType type, std::int64_t elements, const void* a, const void* b, void* y,
                  cudaStream_t stream);
void cast(ElementType from, ElementType to, std::int64_t elements, const void* x, void* y,
          cudaStream_t stream);
/// sum += x, in fp32.
void accumulate(ElementType type, std::int64_t elements, const void* x, float* sum,
                cudaStream_t stream);
/// x *= factor[0], in fp32; `factor` lies on the device.
void scale_by(std::int64_t elements, const float* factor, float* x, cudaStream_t stream);
/// x *= factor, in fp32; found[0] = 1 where a product is not finite.
void unscale(std::int64_t elements, float factor, float* x, float* found, cudaStream_t stream);
void fill(ElementType type, std::int64_t elements, float value, void* y, cudaStream_t stream);
void copy(std::size_t bytes, const void* from, void* to, cudaStream_t stream);

struct RopeShape {
  ElementType type = ElementType::bf16;
  std::int64_t batch = 0, sequence = 0, heads = 0, head_dim = 0;
  std::int64_t token_stride = 0;  // elements from token to token; 0: heads * head_dim
};
/// cos and sin of position * base^(-2 i / head_dim), fp32 [sequence, head_dim / 2] each.
void rope_table(std::int64_t sequence, std::int64_t head_dim, float base, float* cosines,
                float* sines, cudaStream_t stream);
/// Rotates (x[i], x[i + head_dim / 2]) by its angle; backward by minus the angle. y may be x.
void rope(const RopeShape& shape, Pass pass, const void* x, const float* cosines,
          const float* sines, void* y, cudaStream_t stream);

// ---- Vocabulary (vocabulary.cu). Ranks may have a part of it each: rows of tables,
// columns of logits.

struct VocabularyPart {
  std::int64_t first = 0, size = 0;
};

/// y[token] = table[ids[token] - first], zeros where another rank has the row. table [size, width];
/// Rows: tokens and width.
void embedding_forward(const Rows& shape, const VocabularyPart& part, const void* table,
                       const std::int32_t* ids, void* y, cudaStream_t stream);
/// d_table[ids[token] - first] += dy[token]: summed in fp32 by token, rounded once, the same bits
/// on every run. At most 2^30 tokens.
void embedding_backward(const Rows& shape, const VocabularyPart& part, const std::int32_t* ids,
                        const void* dy, void* d_table, cudaStream_t stream);

/// Of logits [rows, width], Rows: lse[row] = ln sum exp(logits[row]); target[row] = the logit of
/// column targets[row] - first, 0 where another rank has it.
void loss_forward(const Rows& shape, std::int64_t first, const void* logits,
                  const std::int32_t* targets, float* lse, float* target, cudaStream_t stream);
/// logits become scale * (exp(logits - lse) - one at the target), lse being that of the whole row.
void loss_backward(const Rows& shape, std::int64_t first, void* logits, const std::int32_t* targets,
                   const float* lse, float scale, cudaStream_t stream);
/// Rows cut over ranks, `most` being the largest lse of a row's parts: sums = exp(lse - most), and
/// of their sums over ranks lse = most + ln sums.
void lse_to_sums(std::int64_t rows, const float* lse, const float* most, float* sums,
                 cudaStream_t stream);
void sums_to_lse(std::int64_t rows, const float* most, const float* sums, float* lse,
                 cudaStream_t stream);
/// sum[0] += sum of lse - target, the same bits on every run.
void add_loss(std::int64_t rows, const float* lse, const float* target, float* sum,
              cudaStream_t stream);

// ---- Optimizer and sharding (optimizer.cu).

struct AdamW {
  float learning_rate = 0, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F, weight_decay = 0;
  std::int64_t step = 1;     // from 1: corrects the bias of both moments
  float gradient_scale = 1;  // times every gradient: clipping, loss scale
};
struct AdamWTensors {
  const void* gradient = nullptr;
  ElementType gradient_type = ElementType::fp32;
  float *master = nullptr, *first_moment = nullptr, *second_moment = nullptr;
  void* parameters = nullptr;  // rounded copy of the master; null: none
  ElementType parameter_type = ElementType::bf16;
};
void adamw(const AdamW& settings, const AdamWTensors& tensors, std::int64_t elements,
           cudaStream_t stream);

/// Work on many tensors that one kernel does: a table of pieces on the device. A block has a part
/// of one piece.
struct SquaresPiece {
  const void* tensor = nullptr;
  std::int64_t elements = 0;
  std::int64_t first_block = 0;  // of the kernel; number_blocks fills it
};
struct CopyPiece {
  void* to = nullptr;
  const void* from = nullptr;
  std::int64_t elements = 0;
  std::int64_t first_block = 0;  // of the kernel; number_blocks fills it
};
/// Fills first_block; returns how many blocks there are. Before the table goes to the device.
std::int64_t number_blocks(std::span<SquaresPiece> pieces);
std::int64_t number_blocks(std::span<CopyPiece> pieces);

/// A table of pieces, numbered, on the device.
template <class Piece>
struct Pieces {
  const Piece* pieces = nullptr;
  std::int64_t count = 0, num_blocks = 0;
};
/// results[i] = sum of x^2 of tensor i, the same bits on every run. `partial`: a float a block.
void sums_of_squares(ElementType type, const Pieces<SquaresPiece>& tensors, float* partial,
                     float* results, cudaStream_t stream);
/// result[0] = sum of values * weights, in order of the threads of one block.
void weighted_sum(std::int64_t count, const float* values, const float* weights, float* result,
                  cudaStream_t stream);
/// factor[0] = min(1, largest / (sqrt(squares[0]) + 1e-6)), as torch.nn.utils.clip_grad_norm_.
void clip_factor(const float* squares, float largest, float* factor, cudaStream_t stream);

/// to = from, for every piece; between tensors, parameters and flat buffers, as FSDP gathers them.
void copies(ElementType from, ElementType to, const Pieces<CopyPiece>& pieces, cudaStream_t stream);

/// Does nothing: the cost of a launch.
void empty_kernel(cudaStream_t stream);

}  // namespace stepcast::calibrate::cuda_kernels
