// cuDNN's attention as one node of its graph API (CUDNN_BACKEND_OPERATION_SDPA_FWD and _BWD), for
// comparison with ours. The library is loaded when the program runs: where it is missing, or older
// than its header, there is no such task. Without a mask: the single node takes none before 9.21.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace stepcast::calibrate {

struct CudnnAttentionShape {
  std::int64_t batch = 0, sequence = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool bf16 = true;  // else fp16
  float scale = 1;
  bool backward = false;
};

/// One plan of cuDNN's first choice for a shape. Tensors lie as our kernels' do: [batch, sequence,
/// heads, head_dim], lse [batch, heads, sequence] in fp32.
class CudnnAttention {
 public:
  /// Throws Unsupported without cuDNN, and where it has no kernel for the shape.
  explicit CudnnAttention(const CudnnAttentionShape& shape);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  std::size_t workspace_bytes() const;
  /// Forward: q, k, v, o, lse. Backward: q, k, v, o, lse, do, dq, dk, dv.
  void launch(std::span<std::byte* const> tensors, std::byte* workspace, cudaStream_t stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast::calibrate
