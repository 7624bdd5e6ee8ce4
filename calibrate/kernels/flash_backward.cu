// Flash attention backward on mma.sync. A block of 8 warps owns 128 keys of one query head, each
// warp 16 of them, and goes over the queries in tiles of 64 (FlashAttention-2, algorithm 2):
//   S^T = K Q^T, P^T = exp(scale S^T - lse), dV += P^T dO, dP^T = V dO^T,
//   dS^T = P^T (dP^T - delta), dK += dS^T Q, dQ += dS K, and a factor `scale` for dK and dQ at the
// end. Transposed, P and dS stay in the registers of the warp that owns the keys; only dS K needs
// the whole tile and goes through shared memory. Other blocks add to the same dQ: fp32 atomics.
// The next tile of Q and dO arrives while this one is worked on.
#include "calibrate/kernels/flash.cuh"
#include "calibrate/kernels/flash_tile.cuh"

namespace stepcast::calibrate::cuda_kernels {
namespace {

constexpr int kKeys = 128, kQueries = 64, kThreads = 256, kQueryTiles = kQueries / 8;
constexpr int kKeysOfWarp = 16;

using Scores = float[1][kQueryTiles][4];  // keys of the warp x queries

template <int kHeadDim, class Element>
struct BackwardMemory {  // in shared memory
  using Keys = Tile<Element, kKeys, kHeadDim>;
  using Queries = Tile<Element, kQueries, kHeadDim>;
  using ScoreGradients = Tile<Element, kKeys, kQueries>;  // dS^T
  static constexpr int kElements =
      2 * Keys::kElements + 4 * Queries::kElements + ScoreGradients::kElements;
  static constexpr std::size_t kBytes = sizeof(Element) * kElements + sizeof(float) * 4 * kQueries;
  Element* begin;

  __device__ Keys k() const { return {begin}; }
  __device__ Keys v() const { return {begin + Keys::kElements}; }
  __device__ Queries q(int buffer) const { return {queries() + buffer * Queries::kElements}; }
  __device__ Queries d_o(int buffer) const {
    return {queries() + (2 + buffer) * Queries::kElements};
  }
  __device__ ScoreGradients ds() const { return {queries() + 4 * Queries::kElements}; }
  __device__ float* lse(int buffer) const { return rows() + buffer * kQueries; }
  __device__ float* delta(int buffer) const { return rows() + (2 + buffer) * kQueries; }

 private:
  __device__ Element* queries() const { return begin + 2 * Keys::kElements; }
  __device__ float* rows() const { return reinterpret_cast<float*>(begin + kElements); }
};

/// The place of a block in the tensors.
struct Place {
  int first_key, head, batch;
};

/// Starts the copy of the tile of queries that begins at `first_query`. lse of what lies after the
/// last query is infinite: its P is 0.
template <int kHeadDim, class Element>
__device__ void fetch_queries(const BackwardMemory<kHeadDim, Element>& shared, int buffer,
                              const FlashBackward& t, const Place& at, int first_query) {
  const int stride = t.sizes.heads * kHeadDim, left = t.sizes.sequence - first_query;
  const std::int64_t first =
      element_of(at.batch, first_query, at.head, t.sizes.heads, kHeadDim, t.sizes);
  shared.q(buffer).template fetch<kThreads>(static_cast<const Element*>(t.q) + first, stride, left);
  shared.d_o(buffer).template fetch<kThreads>(static_cast<const Element*>(t.d_o) + first, stride,
                                              left);
  const int row = static_cast<int>(threadIdx.x);
  if (row >= kQueries) return;
  const std::int64_t of_row =
      (std::int64_t{at.batch} * t.sizes.heads + at.head) * t.sizes.sequence + first_query + row;
  shared.lse(buffer)[row] = row < left ? t.lse[of_row] * kLog2E : INFINITY;
  shared.delta(buffer)[row] = row < left ? t.delta[of_row] : 0.0F;
}

/// P^T from S^T; 0 where the key lies after the last one, or after the query if causal.
__device__ void exponentiate(Scores& scores, const float* lse_log2, int first_key, int first_query,
                             const FlashSizes& sizes) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const float scale_log2 = sizes.scale * kLog2E;
  const bool border = first_key + kKeysOfWarp > sizes.sequence ||
                      (sizes.causal && first_key + kKeysOfWarp - 1 > first_query);
#pragma unroll
  for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int column = 8 * n + lane % 4 * 2 + c % 2;
      const float p = fast_exp2(scores[0][n][c] * scale_log2 - lse_log2[column]);
      const int key = first_key + lane / 4 + c / 2 * 8;
      const bool hidden =
          border && (key >= sizes.sequence || (sizes.causal && key > first_query + column));
      scores[0][n][c] = hidden ? 0.0F : p;
    }
}

template <class Element>
__device__ void round(Rounded<1, kQueryTiles>& rounded, const Scores& scores, Element kind) {
#pragma unroll
  for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rounded[0][n][half] = pack(scores[0][n][2 * half], scores[0][n][2 * half + 1], kind);
}

/// dP^T becomes dS^T / scale.
__device__ void to_score_gradients(Scores& dp, const Scores& p, const float* delta) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c)
      dp[0][n][c] = p[0][n][c] * (dp[0][n][c] - delta[8 * n + lane % 4 * 2 + c % 2]);
}

/// dS^T of the warp's keys to shared memory, for the other warps.
template <class Ds>
__device__ void share(const Ds& ds, const Rounded<1, kQueryTiles>& rounded, int warp_row) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<unsigned*>(ds.at(warp_row + 8 * half + lane / 4, 8 * n + lane % 4 * 2)) =
          rounded[0][n][half];
}

/// dQ += dS K over the block's keys. The warps share the tile as 2 rows of 32 queries and 4 columns
/// of head_dim / 4.
template <int kHeadDim, class Element>
__device__ void add_query_gradients(const BackwardMemory<kHeadDim, Element>& shared,
                                    const FlashBackward& t, const Place& at, int first_query) {
  constexpr int kColumnTiles = kHeadDim / 4 / 8;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int row = warp / 4 * 32, column = warp % 4 * (kHeadDim / 4);
  float dq[2][kColumnTiles][4] = {};
#pragma unroll 2
  for (int k = 0; k < kKeys; k += 16) {
    unsigned a[2][4];
    shared.ds().load_a_transposed(a[0], k, row);
    shared.ds().load_a_transposed(a[1], k, row + 16);
#pragma unroll
    for (int n = 0; n < kColumnTiles; n += 2) {
      unsigned b[4];
      shared.k().load_b(b, k, column + 8 * n);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        multiply_add(dq[m][n], a[m], b[0], b[1], Element{});
        multiply_add(dq[m][n + 1], a[m], b[2], b[3], Element{});
      }
    }
  }
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = first_query + row + 16 * m + 8 * half + lane / 4;
      if (query >= t.sizes.sequence) continue;
      float* to = t.dq + element_of(at.batch, query, at.head, t.sizes.heads, kHeadDim, t.sizes) +
                  column + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < kColumnTiles; ++n)
        atomic_add_pair(to + 8 * n, dq[m][n][2 * half], dq[m][n][2 * half + 1]);
    }
}

/// The warp's 16 rows of dK or dV.
template <int kHeadDim, class Element>
__device__ void write_rows(const float (&gradient)[1][kHeadDim / 8][4], float factor, void* to,
                           const FlashSizes& sizes, const Place& at, int first_key, Element kind) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int key = first_key + 8 * half + lane / 4;
    if (key >= sizes.sequence) continue;
    Element* row = static_cast<Element*>(to) +
                   element_of(at.batch, key, at.head, sizes.heads, kHeadDim, sizes);
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n)
      *reinterpret_cast<unsigned*>(row + 8 * n + lane % 4 * 2) =
          pack(gradient[0][n][2 * half] * factor, gradient[0][n][2 * half + 1] * factor, kind);
  }
}

template <int kHeadDim, class Element>
__global__ void __launch_bounds__(kThreads) flash_backward(FlashBackward t) {
  const FlashSizes& sizes = t.sizes;
  // Under a causal mask the first keys are seen by the most queries: they start first.
  const Place at{static_cast<int>(blockIdx.x) * kKeys, static_cast<int>(blockIdx.y),
                 static_cast<int>(blockIdx.z)};
  const int warp_row = static_cast<int>(threadIdx.x) / kWarpSize * kKeysOfWarp;
  const BackwardMemory<kHeadDim, Element> shared{dynamic_shared<Element>()};

  const int kv_stride = sizes.kv_heads * kHeadDim;
  const std::int64_t kv = element_of(at.batch, at.first_key, sizes.kv_head_of(at.head),
                                     sizes.kv_heads, kHeadDim, sizes);
  const int keys_left = sizes.sequence - at.first_key;
  shared.k().template fetch<kThreads>(static_cast<const Element*>(t.k) + kv, kv_stride, keys_left);
  shared.v().template fetch<kThreads>(static_cast<const Element*>(t.v) + kv, kv_stride, keys_left);
  int first_query = sizes.causal ? at.first_key : 0;  // a multiple of kQueries
  fetch_queries(shared, 0, t, at, first_query);

  float dk[1][kHeadDim / 8][4] = {}, dv[1][kHeadDim / 8][4] = {};
  for (int buffer = 0; first_query < sizes.sequence; first_query += kQueries, buffer ^= 1) {
    wait_for_copies();
    __syncthreads();  // this tile has arrived; nobody works on the last one any more
    if (first_query + kQueries < sizes.sequence)
      fetch_queries(shared, buffer ^ 1, t, at, first_query + kQueries);

    Scores p = {};
    multiply_rows<kHeadDim>(p, shared.k(), warp_row, shared.q(buffer), Element{});
    exponentiate(p, shared.lse(buffer), at.first_key + warp_row, first_query, sizes);
    Rounded<1, kQueryTiles> rounded;
    round(rounded, p, Element{});
    multiply_result(dv, rounded, shared.d_o(buffer), Element{});

    Scores ds = {};
    multiply_rows<kHeadDim>(ds, shared.v(), warp_row, shared.d_o(buffer), Element{});
    to_score_gradients(ds, p, shared.delta(buffer));
    round(rounded, ds, Element{});
    share(shared.ds(), rounded, warp_row);
    multiply_result(dk, rounded, shared.q(buffer), Element{});
    __syncthreads();  // dS is whole
    add_query_gradients(shared, t, at, first_query);
  }
  write_rows<kHeadDim>(dk, sizes.scale, t.dk, sizes, at, at.first_key + warp_row, Element{});
  write_rows<kHeadDim>(dv, 1.0F, t.dv, sizes, at, at.first_key + warp_row, Element{});
}

template <int kHeadDim, class Element>
void launch_typed(const AttentionShape& shape, const FlashBackward& tensors, cudaStream_t stream) {
  launch("attention_backward", flash_backward<kHeadDim, Element>,
         {.grid = dim3(static_cast<unsigned>(ceil_div(shape.sequence, kKeys)),
                       static_cast<unsigned>(shape.heads), static_cast<unsigned>(shape.batch)),
          .block = dim3(kThreads),
          .shared_bytes = BackwardMemory<kHeadDim, Element>::kBytes,
          .stream = stream},
         tensors);
}

}  // namespace

std::size_t mma_backward_shared_bytes(std::int64_t head_dim) {
  return head_dim == 64 ? BackwardMemory<64, __half>::kBytes : BackwardMemory<128, __half>::kBytes;
}

void launch_mma_backward(const AttentionShape& shape, const FlashBackward& tensors,
                         cudaStream_t stream) {
  const bool bf16 = shape.type == ElementType::bf16;
  if (shape.head_dim == 64)
    (bf16 ? launch_typed<64, __nv_bfloat16> : launch_typed<64, __half>)(shape, tensors, stream);
  else
    (bf16 ? launch_typed<128, __nv_bfloat16> : launch_typed<128, __half>)(shape, tensors, stream);
}

}  // namespace stepcast::calibrate::cuda_kernels
