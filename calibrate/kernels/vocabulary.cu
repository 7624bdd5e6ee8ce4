// The two ends of a language model: the embedding's rows, and the loss over the vocabulary.
#include "calibrate/kernels/language.cuh"

namespace stepcast::calibrate::cuda_kernels {
namespace {

constexpr int kRowThreads = 256, kLossThreads = 1024;

/// One block a token.
template <int kSize, class Element>
__global__ void __launch_bounds__(kRowThreads)
    gather(int width, VocabularyPart part, const Element* table, const std::int32_t* ids,
           Element* y) {
  const std::int64_t row = ids[blockIdx.x] - part.first;
  const bool here = row >= 0 && row < part.size;
  const Element* from = table + row * width;
  Element* to = y + std::int64_t{blockIdx.x} * width;
  const int stride = static_cast<int>(blockDim.x) * kSize;
  for (int i = static_cast<int>(threadIdx.x) * kSize; i < width; i += stride)
    store(to + i, here ? load<kSize>(from + i) : Pack<Element, kSize>{});
}

template <int kSize, class Element>
__device__ void add_pack(float (&sum)[kSize], const Element* from) {
  const auto pack = load<kSize>(from);
#pragma unroll
  for (int j = 0; j < kSize; ++j) sum[j] += to_float(pack.element[j]);
}

constexpr int kWordsOfWarp = 4;  // of 32 tokens each

/// A block of the first token that has an id adds all rows of that id, by token, in registers: one
/// pack a thread, the width cut over blockIdx.y. It finds the others by looking through all ids, a
/// bit for each: every warp 128 of them at once, and the block meets once for a tile of all warps.
template <int kSize, class Element>
__global__ void __launch_bounds__(kRowThreads)
    add_rows(int tokens, int width, VocabularyPart part, const std::int32_t* ids, const Element* dy,
             Element* d_table) {
  __shared__ unsigned equal[2][kRowThreads / kWarpSize * kWordsOfWarp];  // in turn
  const int token = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const std::int32_t id = ids[token];
  const std::int64_t row = id - part.first;
  if (row < 0 || row >= part.size) return;
  bool earlier = false;
  for (int i = thread; i < token; i += threads) earlier |= ids[i] == id;
  if (__syncthreads_or(earlier)) return;

  const int column = (static_cast<int>(blockIdx.y) * threads + thread) * kSize;
  const bool mine = column < width;
  float sum[kSize] = {};
  if (mine) add_pack(sum, d_table + row * width + column);
  if (mine) add_pack(sum, dy + std::int64_t{token} * width + column);
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  const int num_words = threads / kWarpSize * kWordsOfWarp;
  int turn = 0;
  for (int first = token + 1; first < tokens; first += num_words * kWarpSize, turn ^= 1) {
    unsigned any = 0;
#pragma unroll
    for (int word = warp * kWordsOfWarp; word < (warp + 1) * kWordsOfWarp; ++word) {
      const int i = first + word * kWarpSize + lane;
      const unsigned bits = __ballot_sync(0xffffffffU, i < tokens && ids[i] == id);
      if (lane == 0) equal[turn][word] = bits;
      any |= bits;
    }
    if (!__syncthreads_or(any != 0)) continue;
    for (int word = 0; word < num_words; ++word)
      for (unsigned bits = equal[turn][word]; bits != 0; bits &= bits - 1) {
        const std::int64_t other = first + word * kWarpSize + __ffs(static_cast<int>(bits)) - 1;
        if (mine) add_pack(sum, dy + other * width + column);
      }
  }
  if (!mine) return;
  Pack<Element, kSize> result;
#pragma unroll
  for (int j = 0; j < kSize; ++j) assign(result.element[j], sum[j]);
  store(d_table + row * width + column, result);
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
/// arXiv 1805.02867).
template <int kSize, class Element>
__global__ void __launch_bounds__(kLossThreads)
    sum_exponentials(int width, std::int64_t first_column, const Element* logits,
                     const std::int32_t* targets, float* lse, float* target) {
  const std::int64_t row = blockIdx.x;
  const Element* from = logits + row * width;
  const int stride = static_cast<int>(blockDim.x) * kSize;
  Exponentials seen;
  for (int i = static_cast<int>(threadIdx.x) * kSize; i < width; i += stride) {
    float x[kSize];
    to_floats(x, from + i);
    seen.add(x);
  }
  const float largest = block_reduce<Largest>(seen.largest);
  const float sum = block_sum(seen.relative_to(largest));
  if (threadIdx.x != 0) return;
  const std::int64_t column = targets[row] - first_column;
  lse[row] = largest + logf(sum);
  target[row] = column >= 0 && column < width ? to_float(from[column]) : 0.0F;
}

/// One block a row.
template <int kSize, class Element>
__global__ void __launch_bounds__(kLossThreads)
    loss_gradient(int width, std::int64_t first_column, const std::int32_t* targets,
                  const float* lse, float scale, Element* logits) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t column = targets[row] - first_column;
  const float of_row = lse[row];
  Element* at = logits + row * width;
  const int stride = static_cast<int>(blockDim.x) * kSize;
  for (int i = static_cast<int>(threadIdx.x) * kSize; i < width; i += stride) {
    float x[kSize];
    to_floats(x, at + i);
    Pack<Element, kSize> result;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const float p = fast_exp2((x[j] - of_row) * Exponentials::kLog2E);
      assign(result.element[j], scale * (p - (i + j == column ? 1.0F : 0.0F)));
    }
    store(at + i, result);
  }
}

__global__ void __launch_bounds__(kRowThreads)
    exponentials_of(std::int64_t rows, const float* lse, const float* most, float* sums) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < rows) sums[row] = expf(lse[row] - most[row]);
}

__global__ void __launch_bounds__(kRowThreads)
    logarithms_of(std::int64_t rows, const float* most, const float* sums, float* lse) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < rows) lse[row] = most[row] + logf(sums[row]);
}

/// One block.
__global__ void __launch_bounds__(kLossThreads)
    add_differences(std::int64_t rows, const float* lse, const float* target, float* sum) {
  float mine = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x)
    mine += lse[row] - target[row];
  mine = block_sum(mine);
  if (threadIdx.x == 0) *sum += mine;
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

LaunchShape thread_a_row(std::int64_t rows, cudaStream_t stream) {
  return {.grid = dim3(static_cast<unsigned>(ceil_div(rows, kRowThreads))),
          .block = dim3(kRowThreads),
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

void embedding_forward(const Rows& shape, const VocabularyPart& part, const void* table,
                       const std::int32_t* ids, void* y, cudaStream_t stream) {
  with_packs(shape, {table, y}, [&](auto kind, auto size) {
    using Element = decltype(kind);
    launch("embedding_forward", gather<size(), Element>,
           block_a_row(shape, size, kRowThreads, stream), static_cast<int>(shape.width), part,
           static_cast<const Element*>(table), ids, static_cast<Element*>(y));
  });
}

void embedding_backward(const Rows& shape, const VocabularyPart& part, const std::int32_t* ids,
                        const void* dy, void* d_table, cudaStream_t stream) {
  with_packs(shape, {dy, d_table}, [&](auto kind, auto size) {
    using Element = decltype(kind);
    LaunchShape blocks = block_a_row(shape, size, kRowThreads, stream);
    blocks.grid.y = static_cast<unsigned>(
        ceil_div(shape.width, std::int64_t{size()} * static_cast<std::int64_t>(blocks.block.x)));
    launch("embedding_backward", add_rows<size(), Element>, blocks, static_cast<int>(shape.rows),
           static_cast<int>(shape.width), part, ids, static_cast<const Element*>(dy),
           static_cast<Element*>(d_table));
  });
}

void loss_forward(const Rows& shape, std::int64_t first, const void* logits,
                  const std::int32_t* targets, float* lse, float* target, cudaStream_t stream) {
  with_packs(shape, {logits}, [&](auto kind, auto size) {
    using Element = decltype(kind);
    launch("loss_forward", sum_exponentials<size(), Element>,
           block_a_row(shape, size, kLossThreads, stream), static_cast<int>(shape.width), first,
           static_cast<const Element*>(logits), targets, lse, target);
  });
}

void loss_backward(const Rows& shape, std::int64_t first, void* logits, const std::int32_t* targets,
                   const float* lse, float scale, cudaStream_t stream) {
  with_packs(shape, {logits}, [&](auto kind, auto size) {
    using Element = decltype(kind);
    launch("loss_backward", loss_gradient<size(), Element>,
           block_a_row(shape, size, kLossThreads, stream), static_cast<int>(shape.width), first,
           targets, lse, scale, static_cast<Element*>(logits));
  });
}

void lse_to_sums(std::int64_t rows, const float* lse, const float* most, float* sums,
                 cudaStream_t stream) {
  launch("lse_to_sums", exponentials_of, thread_a_row(rows, stream), rows, lse, most, sums);
}

void sums_to_lse(std::int64_t rows, const float* most, const float* sums, float* lse,
                 cudaStream_t stream) {
  launch("sums_to_lse", logarithms_of, thread_a_row(rows, stream), rows, most, sums, lse);
}

void add_loss(std::int64_t rows, const float* lse, const float* target, float* sum,
              cudaStream_t stream) {
  LaunchShape shape = block_a_row({.rows = 1, .width = rows}, 1, kLossThreads, stream);
  launch("add_loss", add_differences, shape, rows, lse, target, sum);
}

}  // namespace stepcast::calibrate::cuda_kernels
