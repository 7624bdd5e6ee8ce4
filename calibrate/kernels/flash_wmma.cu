// Flash attention on WMMA: for Volta and Turing, which lack mma.m16n8k16 with bf16 and cp.async,
// and for GPUs with too little shared memory for the other kernels. fp16 alone. The equations are
// those of flash_forward.cu and flash_backward.cu. WMMA hides which lane holds what, so
// scores go through shared memory, and O shrinks by a fragment that holds each row's factor. Clear
// before fast: several times slower than what mma.sync could do on Volta.
#include "calibrate/kernels/flash.cuh"
#include "calibrate/kernels/flash_wmma.cuh"

namespace stepcast::calibrate::cuda_kernels {
namespace {

constexpr int kWarps = 4, kThreads = kWarps * kWarpSize;

/// Rows of `kColumns` halves and 16 bytes that spread rows over the banks.
template <int kRows, int kColumns>
struct Block {
  static constexpr int kStride = kColumns + 8;
  alignas(32) __half element[kRows * kStride];

  __device__ const __half* at(int row, int column) const {
    return element + row * kStride + column;
  }
  __device__ __half* at(int row, int column) { return element + row * kStride + column; }

  /// Copies `rows_left` rows; the rest becomes zero. By the whole block of threads.
  __device__ void fetch(const __half* first, int row_stride, int rows_left) {
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns / 8; i += kThreads) {
      const int row = i / (kColumns / 8), column = i % (kColumns / 8) * 8;
      Pack<__half, 8> pack{};
      if (row < rows_left) pack = load<8>(first + std::int64_t{row} * row_stride + column);
      *reinterpret_cast<Pack<__half, 8>*>(at(row, column)) = pack;
    }
  }
};

/// A 16 x 16 tile of floats that one warp passes on to itself.
struct Stage {
  alignas(32) float element[16 * 16];
};

__device__ void to_stage(Stage& stage, const Accumulator& c) {
  wmma::store_matrix_sync(stage.element, c, 16, wmma::mem_row_major);
  __syncwarp();
}

// ---- Forward: each warp owns 16 queries; keys come in tiles of 32.

constexpr int kForwardQueries = 16 * kWarps, kForwardKeys = 32;

template <int kHeadDim>
struct ForwardMemory {
  Block<kForwardQueries, kHeadDim> q;
  Block<kForwardKeys, kHeadDim> k, v;
  Block<kForwardQueries, kForwardKeys> p;
  Stage stage[kWarps][2];
};

/// A row of 32 scores is held by two lanes, 16 each; writes P and returns the shrinking factor.
__device__ float exponentiate(const Stage (&stage)[2], __half* p, int query, int first_key,
                              const FlashSizes& sizes, float& largest, float& sum) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize, row = lane / 2, tile = lane % 2;
  const float* scores = stage[tile].element + row * 16;
  const float scale_log2 = sizes.scale * kLog2E, before = largest;
  float score[16];
  for (int i = 0; i < 16; ++i) {
    const int key = first_key + tile * 16 + i;
    const bool hidden = key >= sizes.sequence || (sizes.causal && key > query);
    score[i] = hidden ? -INFINITY : scores[i];
    largest = fmaxf(largest, score[i]);
  }
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 1));
  float added = 0;
  for (int i = 0; i < 16; ++i) {
    const float x = fast_exp2((score[i] - largest) * scale_log2);
    added += x;
    assign(p[tile * 16 + i], x);
  }
  added += __shfl_xor_sync(0xffffffffU, added, 1);
  const float shrink = fast_exp2((before - largest) * scale_log2);
  sum = sum * shrink + added;
  return shrink;
}

/// c *= factor of its row; a lane holds the factor of row lane / 2.
__device__ void scale_rows(Stage& stage, float factor, Accumulator* c, int num_tiles) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  __syncwarp();
  for (int i = 0; i < 8; ++i) stage.element[lane * 8 + i] = factor;  // half a row
  __syncwarp();
  Accumulator factors;
  wmma::load_matrix_sync(factors, stage.element, 16, wmma::mem_row_major);
#pragma unroll
  for (int n = 0; n < num_tiles; ++n)
#pragma unroll
    for (int i = 0; i < c[n].num_elements; ++i) c[n].x[i] *= factors.x[i];
  __syncwarp();
}

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads) wmma_forward(FlashForward t) {
  constexpr int kTiles = kHeadDim / 16;
  const FlashSizes& sizes = t.sizes;
  auto& shared = *dynamic_shared<ForwardMemory<kHeadDim>>();
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int head = static_cast<int>(blockIdx.y), kv_head = sizes.kv_head_of(head);
  const std::int64_t batch = blockIdx.z;
  const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kForwardQueries;
  const int query = first_query + 16 * warp + lane / 2;  // whose row this lane sums
  const int q_stride = sizes.heads * kHeadDim, kv_stride = sizes.kv_heads * kHeadDim;
  const auto* k = static_cast<const __half*>(t.k);
  const auto* v = static_cast<const __half*>(t.v);
  shared.q.fetch(static_cast<const __half*>(t.q) +
                     element_of(batch, first_query, head, sizes.heads, kHeadDim, sizes),
                 q_stride, sizes.sequence - first_query);

  Accumulator o[kTiles];
  for (int n = 0; n < kTiles; ++n) wmma::fill_fragment(o[n], 0.0F);
  float largest = -INFINITY, sum = 0;
  const int num_keys =
      sizes.causal ? min(sizes.sequence, first_query + kForwardQueries) : sizes.sequence;
  for (int first_key = 0; first_key < num_keys; first_key += kForwardKeys) {
    const std::int64_t kv = element_of(batch, first_key, kv_head, sizes.kv_heads, kHeadDim, sizes);
    __syncthreads();  // nobody reads the last K and V any more
    shared.k.fetch(k + kv, kv_stride, sizes.sequence - first_key);
    shared.v.fetch(v + kv, kv_stride, sizes.sequence - first_key);
    __syncthreads();
    for (int tile = 0; tile < 2; ++tile) {
      Accumulator s;
      wmma::fill_fragment(s, 0.0F);
      for (int d = 0; d < kHeadDim; d += 16)
        multiply<Rows16, Columns16>(s, shared.q.at(16 * warp, d), shared.k.at(16 * tile, d),
                                    shared.q.kStride, shared.k.kStride);
      to_stage(shared.stage[warp][tile], s);
    }
    __half* p = shared.p.at(16 * warp, 0);
    const float shrink = exponentiate(shared.stage[warp], p + lane / 2 * shared.p.kStride, query,
                                      first_key, sizes, largest, sum);
    scale_rows(shared.stage[warp][0], shrink, o, kTiles);
    for (int n = 0; n < kTiles; ++n)
      for (int key = 0; key < kForwardKeys; key += 16)
        multiply<Rows16, Rows16>(o[n], p + key, shared.v.at(key, 16 * n), shared.p.kStride,
                                 shared.v.kStride);
  }

  scale_rows(shared.stage[warp][0], 1.0F / sum, o, kTiles);
  if (query < sizes.sequence && lane % 2 == 0)
    t.lse[(batch * sizes.heads + head) * sizes.sequence + query] =
        largest * sizes.scale + logf(sum);
  __half* row = static_cast<__half*>(t.o) +
                element_of(batch, query, head, sizes.heads, kHeadDim, sizes) + lane % 2 * 8;
  for (int n = 0; n < kTiles; ++n) {
    to_stage(shared.stage[warp][0], o[n]);
    if (query < sizes.sequence)
      for (int i = 0; i < 8; ++i)
        assign(row[16 * n + i], shared.stage[warp][0].element[lane * 8 + i]);
    __syncwarp();
  }
}

// ---- Backward: a block owns 32 keys of one query head; queries come in tiles of 32. Of the 2 x 2
// tiles of scores each warp makes one, of the gradients every fourth column of tiles.

constexpr int kKeys = 32, kQueries = 32;

template <int kHeadDim>
struct BackwardMemory {
  Block<kKeys, kHeadDim> k, v;
  Block<kQueries, kHeadDim> q, d_o;
  Block<kQueries, kKeys> p, ds;
  Stage stage[kWarps];
};

/// P and dS of the warp's tile of scores: rows are queries. A lane has 8 neighbours of one row.
template <int kHeadDim>
__device__ void make_scores(BackwardMemory<kHeadDim>& shared, const FlashBackward& t,
                            std::int64_t first_row, int first_query, int first_key) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int query_tile = warp / 2 * 16, key_tile = warp % 2 * 16;
  const int row = query_tile + lane / 2, column = key_tile + lane % 2 * 8;
  const int query = first_query + row;
  const bool inside = query < t.sizes.sequence;
  const float lse = inside ? t.lse[first_row + query] * kLog2E : 0.0F;
  const float delta = inside ? t.delta[first_row + query] : 0.0F;
  Stage& stage = shared.stage[warp];
  Accumulator s, dp;
  wmma::fill_fragment(s, 0.0F);
  wmma::fill_fragment(dp, 0.0F);
  for (int d = 0; d < kHeadDim; d += 16) {
    multiply<Rows16, Columns16>(s, shared.q.at(query_tile, d), shared.k.at(key_tile, d),
                                shared.q.kStride, shared.k.kStride);
    multiply<Rows16, Columns16>(dp, shared.d_o.at(query_tile, d), shared.v.at(key_tile, d),
                                shared.d_o.kStride, shared.v.kStride);
  }
  float p[8];
  to_stage(stage, s);
  for (int i = 0; i < 8; ++i) {
    const int key = first_key + column + i;
    const bool hidden = !inside || key >= t.sizes.sequence || (t.sizes.causal && key > query);
    p[i] = hidden ? 0.0F : fast_exp2(stage.element[lane * 8 + i] * t.sizes.scale * kLog2E - lse);
    assign(*shared.p.at(row, column + i), p[i]);
  }
  __syncwarp();
  to_stage(stage, dp);
  for (int i = 0; i < 8; ++i)
    assign(*shared.ds.at(row, column + i), p[i] * (stage.element[lane * 8 + i] - delta));
  __syncwarp();
}

/// dV += P^T dO, dK += dS^T Q for the warp's columns of tiles.
template <int kHeadDim, int kColumns>
__device__ void add_key_gradients(const BackwardMemory<kHeadDim>& shared,
                                  Accumulator (&dk)[kColumns][2], Accumulator (&dv)[kColumns][2]) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
#pragma unroll
  for (int n = 0; n < kColumns; ++n)
#pragma unroll
    for (int m = 0; m < 2; ++m)
      for (int query = 0; query < kQueries; query += 16) {
        const int column = 16 * (warp + n * kWarps);
        multiply<Columns16, Rows16>(dv[n][m], shared.p.at(query, 16 * m),
                                    shared.d_o.at(query, column), shared.p.kStride,
                                    shared.d_o.kStride);
        multiply<Columns16, Rows16>(dk[n][m], shared.ds.at(query, 16 * m),
                                    shared.q.at(query, column), shared.ds.kStride,
                                    shared.q.kStride);
      }
}

/// dQ += dS K for the warp's columns of tiles.
template <int kHeadDim>
__device__ void add_query_gradients(BackwardMemory<kHeadDim>& shared, const FlashBackward& t,
                                    int batch, int head, int first_query) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  for (int column = 16 * warp; column < kHeadDim; column += 16 * kWarps)
    for (int m = 0; m < 2; ++m) {
      Accumulator dq;
      wmma::fill_fragment(dq, 0.0F);
      for (int key = 0; key < kKeys; key += 16)
        multiply<Rows16, Rows16>(dq, shared.ds.at(16 * m, key), shared.k.at(key, column),
                                 shared.ds.kStride, shared.k.kStride);
      to_stage(shared.stage[warp], dq);
      const int query = first_query + 16 * m + lane / 2;
      if (query < t.sizes.sequence) {
        float* to = t.dq + element_of(batch, query, head, t.sizes.heads, kHeadDim, t.sizes) +
                    column + lane % 2 * 8;
        for (int i = 0; i < 8; i += 2)
          atomic_add_pair(to + i, shared.stage[warp].element[lane * 8 + i],
                          shared.stage[warp].element[lane * 8 + i + 1]);
      }
      __syncwarp();
    }
}

/// The warp's columns of dK or dV.
template <int kHeadDim, int kColumns>
__device__ void write_columns(Stage& stage, const Accumulator (&gradient)[kColumns][2],
                              float factor, void* to, const FlashSizes& sizes, int first_key) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int n = 0; n < kColumns; ++n)
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      to_stage(stage, gradient[n][m]);
      const int key = first_key + 16 * m + lane / 2;
      __half* row =
          static_cast<__half*>(to) +
          element_of(blockIdx.z, key, static_cast<int>(blockIdx.y), sizes.heads, kHeadDim, sizes) +
          16 * (warp + n * kWarps) + lane % 2 * 8;
      if (key < sizes.sequence)
        for (int i = 0; i < 8; ++i) assign(row[i], stage.element[lane * 8 + i] * factor);
      __syncwarp();
    }
}

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads) wmma_backward(FlashBackward t) {
  constexpr int kColumns = kHeadDim / 16 / kWarps;
  const FlashSizes& sizes = t.sizes;
  auto& shared = *dynamic_shared<BackwardMemory<kHeadDim>>();
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int head = static_cast<int>(blockIdx.y), kv_head = sizes.kv_head_of(head);
  const int batch = static_cast<int>(blockIdx.z), first_key = static_cast<int>(blockIdx.x) * kKeys;
  const std::int64_t kv = element_of(batch, first_key, kv_head, sizes.kv_heads, kHeadDim, sizes);
  const int q_stride = sizes.heads * kHeadDim, kv_stride = sizes.kv_heads * kHeadDim;
  shared.k.fetch(static_cast<const __half*>(t.k) + kv, kv_stride, sizes.sequence - first_key);
  shared.v.fetch(static_cast<const __half*>(t.v) + kv, kv_stride, sizes.sequence - first_key);
  Accumulator dk[kColumns][2], dv[kColumns][2];
  for (int n = 0; n < kColumns; ++n)
    for (int m = 0; m < 2; ++m)
      wmma::fill_fragment(dk[n][m], 0.0F), wmma::fill_fragment(dv[n][m], 0.0F);

  const std::int64_t first_row = (std::int64_t{batch} * sizes.heads + head) * sizes.sequence;
  for (int first_query = sizes.causal ? first_key : 0; first_query < sizes.sequence;
       first_query += kQueries) {
    const std::int64_t q = element_of(batch, first_query, head, sizes.heads, kHeadDim, sizes);
    __syncthreads();  // nobody works on the last tile any more
    shared.q.fetch(static_cast<const __half*>(t.q) + q, q_stride, sizes.sequence - first_query);
    shared.d_o.fetch(static_cast<const __half*>(t.d_o) + q, q_stride, sizes.sequence - first_query);
    __syncthreads();
    make_scores(shared, t, first_row, first_query, first_key);
    __syncthreads();  // P and dS are whole
    add_key_gradients(shared, dk, dv);
    add_query_gradients(shared, t, batch, head, first_query);
  }
  write_columns<kHeadDim>(shared.stage[warp], dk, sizes.scale, t.dk, sizes, first_key);
  write_columns<kHeadDim>(shared.stage[warp], dv, 1.0F, t.dv, sizes, first_key);
}

dim3 grid_of(const AttentionShape& shape, int tokens_of_block) {
  return dim3(static_cast<unsigned>(ceil_div(shape.sequence, tokens_of_block)),
              static_cast<unsigned>(shape.heads), static_cast<unsigned>(shape.batch));
}

}  // namespace

void launch_wmma_forward(const AttentionShape& shape, const FlashForward& tensors,
                         cudaStream_t stream) {
  const bool narrow = shape.head_dim == 64;
  launch("attention_forward", narrow ? wmma_forward<64> : wmma_forward<128>,
         {.grid = grid_of(shape, kForwardQueries),
          .block = dim3(kThreads),
          .shared_bytes = narrow ? sizeof(ForwardMemory<64>) : sizeof(ForwardMemory<128>),
          .stream = stream},
         tensors);
}

void launch_wmma_backward(const AttentionShape& shape, const FlashBackward& tensors,
                          cudaStream_t stream) {
  const bool narrow = shape.head_dim == 64;
  launch("attention_backward", narrow ? wmma_backward<64> : wmma_backward<128>,
         {.grid = grid_of(shape, kKeys),
          .block = dim3(kThreads),
          .shared_bytes = narrow ? sizeof(BackwardMemory<64>) : sizeof(BackwardMemory<128>),
          .stream = stream},
         tensors);
}

}  // namespace stepcast::calibrate::cuda_kernels
