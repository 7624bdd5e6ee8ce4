// Attention as callers see it: which kernels a GPU can run, and what surrounds them backward.
#include "calibrate/kernels/flash.cuh"

namespace stepcast::calibrate::cuda_kernels {
namespace {

constexpr int kThreads = 256;

FlashSizes sizes_of(const AttentionShape& shape) {
  return {.sequence = static_cast<int>(shape.sequence),
          .heads = static_cast<int>(shape.heads),
          .kv_heads = static_cast<int>(shape.kv_heads),
          .causal = shape.causal,
          .scale = shape.scale};
}

bool grouped(const AttentionShape& shape) { return shape.heads != shape.kv_heads; }

std::int64_t rows_of(const AttentionShape& shape) {
  return shape.batch * shape.sequence * shape.heads;
}

std::optional<std::string> shape_obstacle(const AttentionShape& shape) {
  if (shape.head_dim != 64 && shape.head_dim != 128) return "head dimensions are 64 and 128";
  if (shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0) return "kv_heads must divide heads";
  if (shape.type == ElementType::fp32) return "attention is of bf16 and fp16";
  // A grid has 65,535 blocks in y and z; a row's place in its head counts in 32 bits.
  if (shape.batch > 65535 || shape.heads > 65535) return "more than 65,535 sequences or heads";
  if (shape.sequence > (1 << 30) || shape.heads * shape.head_dim > (1 << 23))
    return "the sequence or the width of a token is too large";
  return std::nullopt;
}

bool has_mma(Pass pass, std::int64_t head_dim) {
  const std::size_t wanted = pass == Pass::forward ? mma_forward_shared_bytes(head_dim)
                                                   : mma_backward_shared_bytes(head_dim);
  return device_attribute(cudaDevAttrComputeCapabilityMajor) >= 8 &&
         device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) >= static_cast<int>(wanted);
}

void expect_runnable(const AttentionShape& shape, Pass pass, const char* name) {
  if (const auto obstacle = attention_obstacle(shape, pass))
    throw LaunchError(std::string(name) + ": " + *obstacle);
}

/// Where the parts of the scratch memory begin, in bytes.
struct Workspace {
  std::size_t dq = 0, delta = 0, dk = 0, dv = 0, bytes = 0;
};

Workspace workspace_of(const AttentionShape& shape) {
  const auto rows = static_cast<std::size_t>(rows_of(shape));
  const auto elements = rows * static_cast<std::size_t>(shape.head_dim);
  const std::size_t expanded = grouped(shape) ? elements * bytes_of(shape.type) : 0;
  Workspace w;  // head_dim is a multiple of 64: the parts begin at multiples of 16 bytes
  w.dk = elements * sizeof(float);
  w.dv = w.dk + expanded;
  w.delta = w.dv + expanded;
  w.bytes = w.delta + rows * sizeof(float);
  return w;
}

/// delta = rowsum(dO O) = rowsum(P dP), one warp a row, and zeros to dq.
template <class Element>
__global__ void __launch_bounds__(kThreads)
    prepare_backward(FlashSizes sizes, std::int64_t num_rows, int head_dim, const Element* o,
                     const Element* d_o, float* delta, float* dq) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const std::int64_t row =
      (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarpSize;  // batch, token, head
  if (row >= num_rows) return;
  float sum = 0;
  for (int i = 2 * lane; i < head_dim; i += 2 * kWarpSize) {
    const auto x = load<2>(o + row * head_dim + i), y = load<2>(d_o + row * head_dim + i);
    sum += to_float(x.element[0]) * to_float(y.element[0]) +
           to_float(x.element[1]) * to_float(y.element[1]);
    store(dq + row * head_dim + i, Pack<float, 2>{});
  }
  sum = warp_sum(sum);
  const std::int64_t head = row % sizes.heads, token = row / sizes.heads;
  const std::int64_t batch = token / sizes.sequence, position = token % sizes.sequence;
  if (lane == 0) delta[(batch * sizes.heads + head) * sizes.sequence + position] = sum;
}

/// dq = factor * sum, rounded; 8 elements a thread.
template <class Element>
__global__ void __launch_bounds__(kThreads)
    round_gradients(std::int64_t elements, float factor, const float* sum, Element* dq) {
  const std::int64_t i = 8 * (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (i >= elements) return;
  const auto x = load<8>(sum + i);
  Pack<Element, 8> y;
#pragma unroll
  for (int j = 0; j < 8; ++j) assign(y.element[j], factor * x.element[j]);
  store(dq + i, y);
}

/// A kv head's gradient is the sum over the query heads that read it; 8 elements a thread.
template <class Element>
__global__ void __launch_bounds__(kThreads)
    sum_heads(std::int64_t elements, int group, int head_dim, const Element* expanded,
              Element* gradient) {
  const std::int64_t i = 8 * (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (i >= elements) return;
  const Element* from = expanded + i / head_dim * group * head_dim + i % head_dim;
  float sum[8] = {};
  for (int head = 0; head < group; ++head) {
    const auto x = load<8>(from + std::int64_t{head} * head_dim);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum[j] += to_float(x.element[j]);
  }
  Pack<Element, 8> y;
#pragma unroll
  for (int j = 0; j < 8; ++j) assign(y.element[j], sum[j]);
  store(gradient + i, y);
}

LaunchShape blocks_for(std::int64_t threads, cudaStream_t stream) {
  return {.grid = dim3(static_cast<unsigned>(ceil_div(threads, kThreads))),
          .block = dim3(kThreads),
          .shared_bytes = 0,
          .stream = stream};
}

template <class Element>
void finish_backward(const AttentionShape& shape, const AttentionBackward& t,
                     const FlashBackward& sums, cudaStream_t stream) {
  const std::int64_t elements = rows_of(shape) * shape.head_dim;
  launch("attention_backward: dQ", round_gradients<Element>, blocks_for(elements / 8, stream),
         elements, shape.scale, static_cast<const float*>(sums.dq), static_cast<Element*>(t.dq));
  if (!grouped(shape)) return;
  const std::int64_t kv_elements = elements / shape.heads * shape.kv_heads;
  const int group = static_cast<int>(shape.heads / shape.kv_heads);
  for (const auto& [from, to] : {std::pair{sums.dk, t.dk}, std::pair{sums.dv, t.dv}})
    launch("attention_backward: sum over heads", sum_heads<Element>,
           blocks_for(kv_elements / 8, stream), kv_elements, group,
           static_cast<int>(shape.head_dim), static_cast<const Element*>(from),
           static_cast<Element*>(to));
}

template <class Element>
void backward(const AttentionShape& shape, const AttentionBackward& t, cudaStream_t stream) {
  const Workspace w = workspace_of(shape);
  char* workspace = static_cast<char*>(t.workspace);
  auto* delta = reinterpret_cast<float*>(workspace + w.delta);
  const FlashBackward tensors{.sizes = sizes_of(shape),
                              .q = t.q,
                              .k = t.k,
                              .v = t.v,
                              .d_o = t.d_o,
                              .lse = t.lse,
                              .delta = delta,
                              .dq = reinterpret_cast<float*>(workspace + w.dq),
                              .dk = grouped(shape) ? workspace + w.dk : t.dk,
                              .dv = grouped(shape) ? workspace + w.dv : t.dv};
  launch("attention_backward: delta", prepare_backward<Element>,
         blocks_for(rows_of(shape) * kWarpSize, stream), tensors.sizes, rows_of(shape),
         static_cast<int>(shape.head_dim), static_cast<const Element*>(t.o),
         static_cast<const Element*>(t.d_o), delta, tensors.dq);
  if (has_mma(Pass::backward, shape.head_dim))
    launch_mma_backward(shape, tensors, stream);
  else
    launch_wmma_backward(shape, tensors, stream);
  finish_backward<Element>(shape, t, tensors, stream);
}

}  // namespace

std::size_t bytes_of(ElementType type) { return type == ElementType::fp32 ? 4 : 2; }

std::optional<std::string> attention_obstacle(const AttentionShape& shape, Pass pass) {
  if (auto obstacle = shape_obstacle(shape)) return obstacle;
  if (shape.type == ElementType::bf16 && !has_mma(pass, shape.head_dim))
    return pass == Pass::forward ? "bf16 attention needs sm_80 or later"
                                 : "bf16 attention backward needs sm_80 or later with the shared "
                                   "memory of an A100 (164 KiB)";
  return std::nullopt;
}

std::size_t attention_workspace_bytes(const AttentionShape& shape) {
  return workspace_of(shape).bytes;
}

void attention_forward(const AttentionShape& shape, const void* q, const void* k, const void* v,
                       void* o, float* lse, cudaStream_t stream) {
  expect_runnable(shape, Pass::forward, "attention_forward");
  const FlashForward tensors{.sizes = sizes_of(shape), .q = q, .k = k, .v = v, .o = o, .lse = lse};
  if (has_mma(Pass::forward, shape.head_dim))
    launch_mma_forward(shape, tensors, stream);
  else
    launch_wmma_forward(shape, tensors, stream);
}

void attention_backward(const AttentionShape& shape, const AttentionBackward& tensors,
                        cudaStream_t stream) {
  expect_runnable(shape, Pass::backward, "attention_backward");
  if (shape.type == ElementType::bf16)
    backward<__nv_bfloat16>(shape, tensors, stream);
  else
    backward<__half>(shape, tensors, stream);
}

}  // namespace stepcast::calibrate::cuda_kernels
