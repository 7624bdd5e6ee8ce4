// What the files of flash attention share: the arguments of its kernels and the two ways to run it.
// Equations: T. Dao, FlashAttention-2, 2023 (arXiv 2307.08691), algorithms 1 and 2.
#pragma once

#include "calibrate/kernels/language.cuh"

namespace stepcast::calibrate::cuda_kernels {

constexpr float kLog2E = 1.44269504088896341F;

/// Tensors of [batch, sequence, heads or kv_heads, head_dim].
struct FlashSizes {
  int sequence = 0, heads = 0, kv_heads = 0;
  bool causal = true;
  float scale = 0.0F;

  /// The kv head that a query head reads.
  __host__ __device__ int kv_head_of(int head) const { return head / (heads / kv_heads); }
};

/// Element (batch, token, head, 0) of such a tensor.
__device__ inline std::int64_t element_of(std::int64_t batch, int token, int head, int num_heads,
                                          int head_dim, const FlashSizes& sizes) {
  return ((batch * sizes.sequence + token) * num_heads + head) * head_dim;
}

struct FlashForward {
  FlashSizes sizes;
  const void *q, *k, *v;
  void* o;
  float* lse;
};

/// dk and dv have as many heads as q; sum_heads adds those of one kv head.
struct FlashBackward {
  FlashSizes sizes;
  const void *q, *k, *v, *d_o;
  const float *lse, *delta;  // [batch, heads, sequence]
  float* dq;                 // to be added to, without the factor `scale`
  void *dk, *dv;
};

// flash_forward.cu, flash_backward.cu: mma.sync, from sm_80 on, bf16 and fp16.
std::size_t mma_forward_shared_bytes(std::int64_t head_dim);
std::size_t mma_backward_shared_bytes(std::int64_t head_dim);
void launch_mma_forward(const AttentionShape& shape, const FlashForward& tensors,
                        cudaStream_t stream);
void launch_mma_backward(const AttentionShape& shape, const FlashBackward& tensors,
                         cudaStream_t stream);

// flash_wmma.cu: WMMA, from sm_70 on, fp16; within 48 KiB of shared memory.
void launch_wmma_forward(const AttentionShape& shape, const FlashForward& tensors,
                         cudaStream_t stream);
void launch_wmma_backward(const AttentionShape& shape, const FlashBackward& tensors,
                          cudaStream_t stream);

}  // namespace stepcast::calibrate::cuda_kernels
