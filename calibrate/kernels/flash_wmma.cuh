// 16x16x16 products of fp16 tiles in shared memory by WMMA.
#pragma once

#include "calibrate/kernels/language.cuh"

#ifndef STEPCAST_CUDA_WMMA
#define STEPCAST_CUDA_WMMA
#include <mma.h>
#endif

namespace stepcast::calibrate::cuda_kernels {

namespace wmma = nvcuda::wmma;

using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
using Rows16 = wmma::row_major;     // the tile lies in memory row by row
using Columns16 = wmma::col_major;  // or column by column: its transpose does row by row

/// c += a b; strides in elements.
template <class LayoutA, class LayoutB>
__device__ void multiply(Accumulator& c, const __half* a, const __half* b, int stride_a,
                         int stride_b) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, LayoutA> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, LayoutB> right;
  wmma::load_matrix_sync(left, a, static_cast<unsigned>(stride_a));
  wmma::load_matrix_sync(right, b, static_cast<unsigned>(stride_b));
  wmma::mma_sync(c, left, right, c);
}

}  // namespace stepcast::calibrate::cuda_kernels
