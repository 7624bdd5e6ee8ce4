// What the calls of a step mean: kernels with what they compute and move, collectives with what
// they send, and what a call costs the host.
#pragma once

#include <cstdint>
#include <string>

#include "engine/units.hpp"
#include "workloads/plan/axes.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::workloads {

enum class KernelFamily : std::uint8_t {
  gemm,
  grouped_gemm,  // of experts: `batch` products, `m` rows each on average
  attention_forward,
  attention_backward,
  sparse_forward,  // attention to keys that an index chose, of latent keys common to all heads
  sparse_backward,
  delta_forward,  // gated delta rule: key heads in kv_heads, their width in head_dim
  delta_backward,
  state_space_forward,  // groups in kv_heads, state in head_dim
  state_space_backward,
  pointwise,  // add, multiply, cast, SiLU, GELU, residual: vectorised, one pass
  quantize,   // casts, amax, transposes and scale layouts of low-precision operands
  permute,    // rows of tokens to the order of experts and back
  router,     // scores, top-k, counts
  norm,       // RMSNorm / LayerNorm, fused, forward
  norm_backward,
  rope,
  activation,   // fused SwiGLU / GELU
  reduction,    // row reductions of eager code
  softmax,      // unfused attention softmax, cross-entropy over the vocabulary
  embedding,    // gather, and its backward scatter-add
  copy,         // copy-in, copy-out, chunk_cat
  optimizer,    // AdamW, gradient norm, clipping
  host_copy,    // between the GPU's memory and the host's
  host_update,  // an optimizer's, by the host's processors
};
/// Softmax attention and what stands in its place.
inline bool mixes_forward(KernelFamily family) {
  using enum KernelFamily;
  return family == attention_forward || family == sparse_forward || family == delta_forward ||
         family == state_space_forward;
}
inline bool mixes_backward(KernelFamily family) {
  using enum KernelFamily;
  return family == attention_backward || family == sparse_backward || family == delta_backward ||
         family == state_space_backward;
}
inline bool on_host(KernelFamily family) {
  return family == KernelFamily::host_copy || family == KernelFamily::host_update;
}

/// What a kernel computes. `flops` and `bytes` (HBM traffic, reads + writes) follow the formula
/// documented where the kernel is emitted. gemm: C[m,n] = A[m,k] B[k,n], `batch` of them; grouped
/// ones have the rows of an expert in m, their weight gradients (which accumulate) in k.
struct Kernel {
  std::string name;  // "layer.mlp.down.wgrad": part, then forward / dgrad / wgrad / backward
  KernelFamily family{};
  Dtype dtype = Dtype::bf16;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;                       // gemm
  std::int64_t heads = 0, kv_heads = 0, sequence = 0, head_dim = 0;  // attention (batch above)
  std::int64_t value_dim = 0;  // of a head's v and o; 0: head_dim
  std::int64_t window = 0;     // tokens that causal attention looks back; 0: all. Sparse: chosen
  bool causal = true;
  bool accumulate = false;   // gemm adds to an fp32 output (gradient-accumulation fusion)
  std::int64_t streams = 1;  // gemm: alike ones follow, that many of which run at a time
  bool one_launch = false;   // grouped_gemm: one kernel for all; else one each on four streams
  Flops flops{};
  Bytes bytes{};

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_receive,
};

/// Tokens on their way to experts or back, sent by kernels that know where they go. Zero tokens: no
/// such exchange.
struct TokenExchange {
  Dispatcher dispatcher = Dispatcher::all_to_all;
  bool combine = false;        // back from the experts
  std::int64_t tokens = 0;     // of a rank
  std::int64_t row_bytes = 0;  // of one token's row with its scales, weights and indices
  std::int64_t experts = 0, per_token = 0;
  std::int64_t groups = 1, group_limit = 1;
  std::int64_t sms = 0;  // that its kernels hold; 0: the library's usual number
  double fullest = 1.0;  // rows of the fullest rank over the mean
  friend bool operator==(const TokenExchange&, const TokenExchange&) = default;
};

/// What a collective moves. `bytes` is nccl-tests' size: the full buffer of all ranks for AllGather
/// and ReduceScatter, the message for AllReduce, Broadcast, Reduce and send_receive.
struct Collective {
  std::string name;  // "layer.gather", "tensor.forward", ...
  CollectiveKind kind{};
  GroupKind group{};
  Dtype dtype = Dtype::bf16;
  Bytes bytes{};
  TokenExchange tokens{};  // all_to_all between experts
  std::int64_t sms = -1;   // that it holds, 0: copy engines run it; -1: as many as NCCL takes
  bool beside = false;     // launched while another micro-batch's kernels have the SMs

  friend bool operator==(const Collective&, const Collective&) = default;
};

/// Index into StepProgram::host_costs, which sim turns into engine durations.
enum HostCost : std::uint8_t {
  free_call,
  kernel_call,
  forward_kernel_call,
  module_call,
  hook_call,
  collective_call,
  event_call,
  unit_call,
  step_call,
  graph_call,       // a CUDA graph is launched
  graph_node_call,  // a kernel in one
  rng_call,         // states of random numbers are exchanged around dropout
  first_check,      // of collective_checks, by kind of group: check_call()
  num_host_costs = first_check + num_group_kinds
};
/// What a check before a collective of this group costs.
constexpr HostCost check_call(GroupKind group) {
  return static_cast<HostCost>(first_check + static_cast<int>(group));
}

}  // namespace stepcast::workloads
