// A tile of rows of 16-bit elements in shared memory, and its fragments. A row is cut in chunks of
// 16 bytes; chunk c of row r lies at c XOR (r % 8), so that the eight rows of one ldmatrix, and the
// columns that a warp writes, fall on different banks.
#pragma once

#include "calibrate/kernels/flash_instructions.cuh"

namespace stepcast::calibrate::cuda_kernels {

constexpr int kChunk = 8;  // elements of 16 bytes

template <class Element, int kRows, int kColumns>
struct Tile {
  static constexpr int kElements = kRows * kColumns;
  static_assert(kColumns == 64 || kColumns == 128, "the XOR stays within a row");
  Element* elements;

  __device__ static int offset(int row, int column) {
    return row * kColumns + (column ^ (row % 8 * kChunk));
  }

  __device__ Element* at(int row, int column) const { return elements + offset(row, column); }

  /// Starts the copy of `rows_left` rows at `first`; the rest becomes zero. By the whole block.
  template <int kThreads>
  __device__ void fetch(const Element* first, int row_stride, int rows_left) const {
    constexpr int chunks = kColumns / kChunk, rows = kThreads / chunks;  // of one round
    static_assert(rows % 8 == 0 && kRows % rows == 0);
    const int thread = static_cast<int>(threadIdx.x);
    const int row = thread / chunks, column = thread % chunks * kChunk;
    Element* to = at(row, column);
    const Element* from = first + std::int64_t{row} * row_stride + column;
#pragma unroll 1  // else a pointer a round, and the registers are full
    for (int i = 0; i < kRows / rows; ++i) {
      copy_16_async(to + i * rows * kColumns, from, row + i * rows < rows_left);
      from += rows * row_stride;
    }
  }

  /// The lane's place in a load of matrices at (row, column), multiples of 8 and 16: with column =
  /// 16 j and lane_column 0 or 8, the XOR of the lane's own place with the column is that of both.
  __device__ const Element* place(int row, int column, int lane_row, int lane_column) const {
    return elements + row * kColumns + (offset(lane_row, lane_column) ^ column);
  }

  /// A[m][k] = tile[row + m][column + k], 16 x 16.
  __device__ void load_a(unsigned (&a)[4], int row, int column) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    load_matrices(a, place(row, column, lane % 16, lane / 16 * 8));
  }

  /// A[m][k] = tile[row + k][column + m]: the tile holds A transposed.
  __device__ void load_a_transposed(unsigned (&a)[4], int row, int column) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    load_matrices_transposed(a, place(row, column, lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8));
  }

  /// B[k][n] = tile[row + n][column + k], 16 deep and 16 wide: b0, b1 of n < 8, then of n >= 8.
  __device__ void load_b_transposed(unsigned (&b)[4], int row, int column) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    load_matrices(b, place(row, column, lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8));
  }

  /// B[k][n] = tile[row + k][column + n].
  __device__ void load_b(unsigned (&b)[4], int row, int column) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    load_matrices_transposed(b, place(row, column, lane % 16, lane / 16 * 8));
  }
};

/// c[m][n] += sum over k of left[left_row + m][k] right[right_row + n][k]: 16 kRowTiles x
/// 8 kColumnTiles; both tiles hold k along their rows.
template <int kDepth, int kRowTiles, int kColumnTiles, class Left, class Right, class Element>
__device__ void multiply_rows(float (&c)[kRowTiles][kColumnTiles][4], const Left& left,
                              int left_row, const Right& right, Element kind) {
#pragma unroll 2  // more makes ptxas keep every address, and spill
  for (int k = 0; k < kDepth; k += 16) {
    unsigned a[kRowTiles][4];
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) left.load_a(a[m], left_row + 16 * m, k);
#pragma unroll
    for (int n = 0; n < kColumnTiles; n += 2) {
      unsigned b[4];
      right.load_b_transposed(b, 8 * n, k);
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        multiply_add(c[m][n], a[m], b[0], b[1], kind);
        multiply_add(c[m][n + 1], a[m], b[2], b[3], kind);
      }
    }
  }
}

/// A product's result rounded to 16 bits: of each lane two neighbours of row g, then of row g + 8.
/// C fragments of two neighbouring tiles are one A fragment of the next product.
template <int kRowTiles, int kColumnTiles>
using Rounded = unsigned[kRowTiles][kColumnTiles][2];

/// c[m][n] += sum over k of p[m][k] right[k][n]; p is 8 kDepthTiles deep.
template <int kRowTiles, int kDepthTiles, int kColumnTiles, class Right, class Element>
__device__ void multiply_result(float (&c)[kRowTiles][kColumnTiles][4],
                                const unsigned (&p)[kRowTiles][kDepthTiles][2], const Right& right,
                                Element kind) {
#pragma unroll
  for (int k = 0; k < kDepthTiles; k += 2) {
#pragma unroll
    for (int n = 0; n < kColumnTiles; n += 2) {
      unsigned b[4];
      right.load_b(b, 8 * k, 8 * n);
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        const unsigned a[4] = {p[m][k][0], p[m][k][1], p[m][k + 1][0], p[m][k + 1][1]};
        multiply_add(c[m][n], a, b[0], b[1], kind);
        multiply_add(c[m][n + 1], a, b[2], b[3], kind);
      }
    }
  }
}

}  // namespace stepcast::calibrate::cuda_kernels
