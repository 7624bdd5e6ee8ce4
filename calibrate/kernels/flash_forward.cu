// Flash attention forward on mma.sync. A block of 4 warps owns 128 queries of one head, each warp
// 32 of them in two tiles of 16, and goes over the keys in tiles of 64 (FlashAttention-2, algorithm
// 1):
//   S = Q K^T, m' = max(m, rowmax S), P = exp(scale (S - m')), l = l exp(scale (m - m')) + rowsum
//   P, O = O exp(scale (m - m')) + P V; at the end O / l and lse = scale m + ln l.
// While S is made V arrives, and while P V is made the next K does.
#include "calibrate/kernels/flash.cuh"
#include "calibrate/kernels/flash_tile.cuh"

namespace stepcast::calibrate::cuda_kernels {
namespace {

constexpr int kQueries = 128, kKeys = 64, kThreads = 128;
constexpr int kRowTiles = 2, kKeyTiles = kKeys / 8;

using Scores = float[kRowTiles][kKeyTiles][4];

/// Of the rows 16 m + 8 half + lane / 4 of a warp: largest score so far, and the sum of
/// exponentials over the columns that this lane holds.
struct RowState {
  float largest[kRowTiles][2], sum[kRowTiles][2];
};

/// Largest over the four lanes that share a row.
__device__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 2));
}

__device__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffU, x, 1);
  return x + __shfl_xor_sync(0xffffffffU, x, 2);
}

/// Minus infinity where the key lies after the last one, or after the query if causal.
__device__ void mask(Scores& scores, int first_query, int first_key, const FlashSizes& sizes) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m)
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int query = first_query + 16 * m + c / 2 * 8 + lane / 4;
        const int key = first_key + 8 * n + lane % 4 * 2 + c % 2;
        if (key >= sizes.sequence || (sizes.causal && key > query)) scores[m][n][c] = -INFINITY;
      }
}

/// P = exp(scale (S - m')) and, in `shrink`, the factor of all that was summed before. The first
/// tile holds key 0, which every query sees: m' is finite from then on.
template <class Element>
__device__ void exponentiate(const Scores& scores, Rounded<kRowTiles, kKeyTiles>& p, RowState& rows,
                             float (&shrink)[kRowTiles][2], float scale_log2, Element kind) {
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = rows.largest[m][half];
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n)
        largest = fmaxf(largest, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
      largest = quad_max(largest);
      shrink[m][half] = fast_exp2((rows.largest[m][half] - largest) * scale_log2);
      rows.largest[m][half] = largest;
      float sum = rows.sum[m][half] * shrink[m][half];
      const float offset = largest * scale_log2;
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
        const float p0 = fast_exp2(scores[m][n][2 * half] * scale_log2 - offset);
        const float p1 = fast_exp2(scores[m][n][2 * half + 1] * scale_log2 - offset);
        sum += p0 + p1;
        p[m][n][half] = pack(p0, p1, kind);
      }
      rows.sum[m][half] = sum;
    }
}

template <int kHeadDim, class Element>
struct ForwardMemory {  // in shared memory
  using Queries = Tile<Element, kQueries, kHeadDim>;
  using Keys = Tile<Element, kKeys, kHeadDim>;
  static constexpr std::size_t kBytes =
      sizeof(Element) * (Queries::kElements + 2 * Keys::kElements);
  Queries q;
  Keys k, v;

  __device__ explicit ForwardMemory(Element* begin)
      : q{begin}, k{begin + Queries::kElements}, v{begin + Queries::kElements + Keys::kElements} {}
};

template <int kHeadDim, class Element>
__device__ void write_rows(const float (&o)[kRowTiles][kHeadDim / 8][4], const RowState& rows,
                           const FlashForward& t, int first_query, int head, std::int64_t batch) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = quad_sum(rows.sum[m][half]);
      const int query = first_query + 16 * m + 8 * half + lane / 4;
      if (query >= t.sizes.sequence) continue;
      if (lane % 4 == 0)
        t.lse[(batch * t.sizes.heads + head) * t.sizes.sequence + query] =
            rows.largest[m][half] * t.sizes.scale + logf(sum);
      Element* row = static_cast<Element*>(t.o) +
                     element_of(batch, query, head, t.sizes.heads, kHeadDim, t.sizes);
      const float inverse = 1.0F / sum;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n)
        *reinterpret_cast<unsigned*>(row + 8 * n + lane % 4 * 2) =
            pack(o[m][n][2 * half] * inverse, o[m][n][2 * half + 1] * inverse, Element{});
    }
}

template <int kHeadDim, class Element>
__global__ void __launch_bounds__(kThreads) flash_forward(FlashForward t) {
  const FlashSizes& sizes = t.sizes;
  // Under a causal mask the last queries see the most keys: they start first.
  const int query_tile = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int head = static_cast<int>(blockIdx.y), kv_head = sizes.kv_head_of(head);
  const std::int64_t batch = blockIdx.z;
  const int first_query = query_tile * kQueries;
  const int warp_row = static_cast<int>(threadIdx.x) / kWarpSize * 16 * kRowTiles;
  const int q_stride = sizes.heads * kHeadDim, kv_stride = sizes.kv_heads * kHeadDim;
  const Element* q = static_cast<const Element*>(t.q) +
                     element_of(batch, first_query, head, sizes.heads, kHeadDim, sizes);
  const std::int64_t kv = element_of(batch, 0, kv_head, sizes.kv_heads, kHeadDim, sizes);
  const Element* k = static_cast<const Element*>(t.k) + kv;
  const Element* v = static_cast<const Element*>(t.v) + kv;

  const ForwardMemory<kHeadDim, Element> shared(dynamic_shared<Element>());
  shared.q.template fetch<kThreads>(q, q_stride, sizes.sequence - first_query);
  shared.k.template fetch<kThreads>(k, kv_stride, sizes.sequence);

  const int num_keys = sizes.causal ? min(sizes.sequence, first_query + kQueries) : sizes.sequence;
  const float scale_log2 = sizes.scale * kLog2E;
  float o[kRowTiles][kHeadDim / 8][4] = {};
  RowState rows;
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) rows.largest[m][half] = -INFINITY, rows.sum[m][half] = 0;

  for (int first_key = 0; first_key < num_keys; first_key += kKeys) {
    wait_for_copies();
    __syncthreads();  // K has arrived; nobody reads the last V any more
    shared.v.template fetch<kThreads>(v, kv_stride, sizes.sequence - first_key);
    v += kKeys * kv_stride;
    Scores scores = {};
    multiply_rows<kHeadDim>(scores, shared.q, warp_row, shared.k, Element{});
    if (first_key + kKeys > sizes.sequence ||
        (sizes.causal && first_key + kKeys - 1 > first_query + warp_row))
      mask(scores, first_query + warp_row, first_key, sizes);

    float shrink[kRowTiles][2];
    Rounded<kRowTiles, kKeyTiles> p;
    exponentiate(scores, p, rows, shrink, scale_log2, Element{});
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m)
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) o[m][n][c] *= shrink[m][c / 2];
    wait_for_copies();
    __syncthreads();  // V has arrived; nobody reads this K any more
    k += kKeys * kv_stride;
    if (first_key + kKeys < num_keys)
      shared.k.template fetch<kThreads>(k, kv_stride, sizes.sequence - first_key - kKeys);
    multiply_result(o, p, shared.v, Element{});
  }
  write_rows<kHeadDim, Element>(o, rows, t, first_query + warp_row, head, batch);
}

template <int kHeadDim, class Element>
void launch_typed(const AttentionShape& shape, const FlashForward& tensors, cudaStream_t stream) {
  launch("attention_forward", flash_forward<kHeadDim, Element>,
         {.grid = dim3(static_cast<unsigned>(ceil_div(shape.sequence, kQueries)),
                       static_cast<unsigned>(shape.heads), static_cast<unsigned>(shape.batch)),
          .block = dim3(kThreads),
          .shared_bytes = ForwardMemory<kHeadDim, Element>::kBytes,
          .stream = stream},
         tensors);
}

}  // namespace

std::size_t mma_forward_shared_bytes(std::int64_t head_dim) {
  return head_dim == 64 ? ForwardMemory<64, __half>::kBytes : ForwardMemory<128, __half>::kBytes;
}

void launch_mma_forward(const AttentionShape& shape, const FlashForward& tensors,
                        cudaStream_t stream) {
  const bool bf16 = shape.type == ElementType::bf16;
  if (shape.head_dim == 64)
    (bf16 ? launch_typed<64, __nv_bfloat16> : launch_typed<64, __half>)(shape, tensors, stream);
  else
    (bf16 ? launch_typed<128, __nv_bfloat16> : launch_typed<128, __half>)(shape, tensors, stream);
}

}  // namespace stepcast::calibrate::cuda_kernels
