// The warp instructions of flash attention on sm_80 and later, one function each: asynchronous
// copies, loads of matrix fragments, products of them. Fragments follow the PTX ISA ("Matrix
// fragments for mma.m16n8k16 with floating point type"): with g = lane / 4 and t = lane % 4,
//   A 16x16  a0: row g, columns 2t, 2t+1; a1: row g+8; a2: row g, columns 2t+8, 2t+9; a3: row g+8
//   B 16x8   b0: rows 2t, 2t+1 of column g; b1: rows 2t+8, 2t+9
//   C 16x8   c0, c1: row g, columns 2t, 2t+1; c2, c3: row g+8
#pragma once

#include "calibrate/kernels/language.cuh"

#ifndef STEPCAST_CUDA_INSTRUCTIONS
#define STEPCAST_CUDA_INSTRUCTIONS

namespace stepcast::calibrate::cuda_kernels {

/// Copies 16 bytes to shared memory past the registers; zeros if not `valid`: then nothing is read.
__device__ inline void copy_16_async(void* shared, const void* global, bool valid) {
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
               : "memory");
#endif
}

/// Waits for this thread's copies; a __syncthreads() makes those of the others visible.
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/// Four 8x8 matrices of 16-bit elements: lane i gives the address of row i % 8 of matrix i / 8 and
/// gets of each the elements (g, 2t), (g, 2t+1).
__device__ inline void load_matrices(unsigned (&fragment)[4], const void* shared) {
#if __CUDA_ARCH__ >= 750
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(from)
               : "memory");
#endif
}

/// The same of the transposed matrices: the elements (2t, g), (2t+1, g).
__device__ inline void load_matrices_transposed(unsigned (&fragment)[4], const void* shared) {
#if __CUDA_ARCH__ >= 750
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(from)
               : "memory");
#endif
}

/// c += a b, in fp32.
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                    __half) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                    __nv_bfloat16) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

}  // namespace stepcast::calibrate::cuda_kernels
#endif
