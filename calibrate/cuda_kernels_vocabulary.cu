// The two ends of a language model: the embedding's rows, and the loss over the vocabulary.
#include "calibrate/cuda_kernels_language.cuh"

namespace stepcast::calibrate::cuda_kernels {
namespace {

constexpr int kRowThreads = 256, kLossThreads = 1024;

/// One block a token.
template <int kSize, class Element>
__global__ void __launch_bounds__(kRowThreads)
    gather(int width, const Element* table, const std::int64_t* ids, Element* y) {
  const Element* from = table + ids[blockIdx.x] * width;
  Element* to = y + std::int64_t{blockIdx.x} * width;
  const int stride = static_cast<int>(blockDim.x) * kSize;
  for (int i = static_cast<int>(threadIdx.x) * kSize; i < width; i += stride)
    store(to + i, load<kSize>(from + i));
}

template <int kSize, class Element>
__global__ void __launch_bounds__(kRowThreads)
    scatter_add(int width, const std::int64_t* ids, const Element* dy, float* d_table) {
  const Element* from = dy + std::int64_t{blockIdx.x} * width;
  float* to = d_table + ids[blockIdx.x] * width;
  const int stride = static_cast<int>(blockDim.x) * kSize;
  for (int i = static_cast<int>(threadIdx.x) * kSize; i < width; i += stride) {
    const auto pack = load<kSize>(from + i);
    if constexpr (kSize == 1) {
      atomicAdd(to + i, to_float(pack.element[0]));
    } else {
#pragma unroll
      for (int j = 0; j < kSize; j += 2)
        atomic_add_pair(to + i + j, to_float(pack.element[j]), to_float(pack.element[j + 1]));
    }
  }
}

/// Largest of the numbers seen, and the sum of exp(number - largest).
struct Exponentials {
  float largest = -INFINITY, sum = 0;

  /// The sum as if `other`, at least `largest`, were the largest. Nothing seen: 0, not NaN.
  __device__ float relative_to(float other) const {
    return sum == 0 ? 0 : sum * fast_exp2((largest - other) * kLog2E);
  }

  template <int kSize>
  __device__ void add(const float (&x)[kSize]) {
    float next = largest;
#pragma unroll
    for (int j = 0; j < kSize; ++j) next = fmaxf(next, x[j]);
    if (next == -INFINITY) return;  // masked columns alone
    sum = relative_to(next);
#pragma unroll
    for (int j = 0; j < kSize; ++j) sum += fast_exp2((x[j] - next) * kLog2E);
    largest = next;
  }

  static constexpr float kLog2E = 1.44269504088896341F;
};

template <int kSize, class Element>
__device__ void to_floats(float (&x)[kSize], const Element* from) {
  const auto pack = load<kSize>(from);
#pragma unroll
  for (int j = 0; j < kSize; ++j) x[j] = to_float(pack.element[j]);
}

/// One block a row: one pass for the largest and the sum together (Milakov & Gimelshein 2018,
/// arXiv 1805.02867), one for the gradient. The second finds the row in the L2 as long as one row
/// per SM fits there.
template <int kSize, class Element>
__global__ void __launch_bounds__(kLossThreads)
    cross_entropy_rows(int width, const Element* logits, const std::int64_t* targets,
                       float gradient, float* losses, Element* d_logits) {
  const std::int64_t row = blockIdx.x;
  const Element* from = logits + row * width;
  const int target = static_cast<int>(targets[row]);
  const int first = static_cast<int>(threadIdx.x) * kSize;
  const int stride = static_cast<int>(blockDim.x) * kSize;
  const float target_logit = to_float(from[target]);  // before d_logits may overwrite it

  Exponentials seen;
  for (int i = first; i < width; i += stride) {
    float x[kSize];
    to_floats(x, from + i);
    seen.add(x);
  }
  const float largest = block_reduce<Largest>(seen.largest);
  const float sum = block_sum(seen.relative_to(largest));
  const float lse = largest + logf(sum);
  if (threadIdx.x == 0) losses[row] = lse - target_logit;
  if (d_logits == nullptr) return;

  Element* to = d_logits + row * width;
  for (int i = first; i < width; i += stride) {
    float x[kSize];
    to_floats(x, from + i);
    Pack<Element, kSize> result;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const float p = fast_exp2((x[j] - lse) * Exponentials::kLog2E);
      assign(result.element[j], gradient * (p - (i + j == target ? 1.0F : 0.0F)));
    }
    store(to + i, result);
  }
}

LaunchShape block_a_row(const Rows& shape, int size, int max_threads, cudaStream_t stream) {
  const std::int64_t packs = ceil_div(shape.width, size);
  const std::int64_t threads =
      std::min<std::int64_t>(ceil_div(packs, kWarpSize) * kWarpSize, max_threads);
  return {.grid = dim3(static_cast<unsigned>(shape.rows)),
          .block = dim3(static_cast<unsigned>(threads)),
          .shared_bytes = 0,
          .stream = stream};
}

/// Calls f with an element and the constant number of them that one access moves.
template <class F>
void with_packs(const Rows& shape, std::initializer_list<const void*> pointers, F f) {
  with_type(shape.type, [&](auto kind) {
    constexpr int size = 16 / sizeof(kind);
    if (shape.width % size == 0 && aligned(pointers))
      f(kind, std::integral_constant<int, size>{});
    else
      f(kind, std::integral_constant<int, 1>{});
  });
}

}  // namespace

void embedding_forward(const Rows& shape, const void* table, const std::int64_t* ids, void* y,
                       cudaStream_t stream) {
  with_packs(shape, {table, y}, [&](auto kind, auto size) {
    using Element = decltype(kind);
    launch("embedding_forward", gather<size(), Element>,
           block_a_row(shape, size, kRowThreads, stream), static_cast<int>(shape.width),
           static_cast<const Element*>(table), ids, static_cast<Element*>(y));
  });
}

void embedding_backward(const Rows& shape, const std::int64_t* ids, const void* dy, float* d_table,
                        cudaStream_t stream) {
  with_packs(shape, {dy, d_table}, [&](auto kind, auto size) {
    using Element = decltype(kind);
    launch("embedding_backward", scatter_add<size(), Element>,
           block_a_row(shape, size, kRowThreads, stream), static_cast<int>(shape.width), ids,
           static_cast<const Element*>(dy), d_table);
  });
}

void cross_entropy(const Rows& shape, const void* logits, const std::int64_t* targets,
                   float gradient, float* losses, void* d_logits, cudaStream_t stream) {
  with_packs(shape, {logits, d_logits}, [&](auto kind, auto size) {
    using Element = decltype(kind);
    launch("cross_entropy", cross_entropy_rows<size(), Element>,
           block_a_row(shape, size, kLossThreads, stream), static_cast<int>(shape.width),
           static_cast<const Element*>(logits), targets, gradient, losses,
           static_cast<Element*>(d_logits));
  });
}

}  // namespace stepcast::calibrate::cuda_kernels
