// Runs the GPU kernels' own source on the host, to test it where no GPU is. Included before a .cu
// file by the compiler (library emulated_kernels), it stands for the first part of
// calibrate/kernels/language.cuh and the warp instructions. One launch at a time. A block's
// threads are fibers; one runs until it meets a barrier or a warp instruction, as far ahead of the
// others as the source allows, in either order: a missing barrier shows as a wrong result.
// Fragments follow the PTX ISA, asynchronous copies land when they are waited for, unwritten shared
// memory is NaN. A thread that leaves the others waiting is an error. Not emulated: limits of
// registers and shared memory, speed, bank conflicts.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#define cuda_kernels \
  emulated_kernels  // not the names of the GPU's functions, where both are linked
#include "calibrate/kernels/kernels.hpp"

#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wpedantic"

#define STEPCAST_CUDA_LANGUAGE
#define STEPCAST_CUDA_INSTRUCTIONS
#define STEPCAST_CUDA_WMMA
#define __global__
#define __device__
#define __host__
#define __shared__ static  // one block runs at a time
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct __half {
  std::uint16_t bits;
};
struct __nv_bfloat16 {
  std::uint16_t bits;
};

/// The bits of fp16 at their place in fp32 are 2^-112 of the number.
inline float __half2float(__half h) {
  const std::uint32_t size = h.bits & 0x7fffU, sign = std::uint32_t{h.bits & 0x8000U} << 16;
  const float value = size >= 0x7c00 ? std::bit_cast<float>(0x7f800000 | size << 13)
                                     : std::bit_cast<float>(size << 13) * 0x1p112F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

/// To the nearest, to even between two: of float's 24 bits of fraction 11 are kept, fewer below
/// 2^-14.
inline __half __float2half_rn(float x) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isnan(x)) return {0x7fff};
  const float size = std::fabs(x);
  if (size >= 65520.0F) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  if (size == 0) return {sign};
  const int exponent = std::max(std::ilogb(size), -14);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return {static_cast<std::uint16_t>(sign + ((exponent + 14) << 10) + steps)};
}

inline float __bfloat162float(__nv_bfloat16 b) {
  return std::bit_cast<float>(std::uint32_t{b.bits} << 16);
}

inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  if (std::isnan(x)) return {0x7fff};
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

#include "tests/calibrate/emulated_threads.hpp"

inline void __syncthreads() { emulated::meet_block(); }
inline void __syncwarp() { emulated::meet_warp(); }

inline float __shfl_xor_sync(unsigned, float x, int distance) {
  float result = 0;
  emulated::exchange(x, [&](auto of) { result = of(emulated::lane() ^ distance); });
  return result;
}

inline unsigned __ballot_sync(unsigned, int predicate) {
  unsigned bits = 0;
  emulated::exchange(predicate != 0, [&](auto of) {
    for (int i = 0; i < emulated::kWarp; ++i) bits |= unsigned{of(i)} << i;
  });
  return bits;
}
inline int __syncthreads_or(int predicate) { return emulated::vote(predicate != 0); }
inline int __ffs(int x) { return std::countr_zero(static_cast<unsigned>(x)) + 1; }  // x is not 0

inline float atomicAdd(float* to, float x) {
  const float before = *to;
  *to += x;
  return before;
}
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
using std::max;
using std::min;

using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0;
enum cudaDeviceAttr {
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrMultiProcessorCount
};

namespace stepcast::calibrate::cuda_kernels {

struct LaunchShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const LaunchShape& shape,
            Arguments... arguments) {
  if (shape.shared_bytes > static_cast<std::size_t>(emulated::device.shared_bytes_of_block))
    throw LaunchError(std::string(name) + ": too much shared memory");
  emulated::run(shape.grid, shape.block, shape.shared_bytes, [&] { kernel(arguments...); });
}

inline int device_attribute(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      return emulated::device.capability_major;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return emulated::device.shared_bytes_of_block;
    case cudaDevAttrMultiProcessorCount:
      return emulated::device.multiprocessors;
  }
  return 0;
}

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emulated::shared_memory());
}

inline unsigned pack(float low, float high, __half) {
  return __float2half_rn(low).bits | unsigned{__float2half_rn(high).bits} << 16;
}
inline unsigned pack(float low, float high, __nv_bfloat16) {
  return __float2bfloat16_rn(low).bits | unsigned{__float2bfloat16_rn(high).bits} << 16;
}

inline void store_16_bytes(void* global, const void* from) { std::memcpy(global, from, 16); }

inline float fast_exp2(float x) {
  const float y = std::exp2(x);
  return y < std::numeric_limits<float>::min() ? 0.0F : y;
}

inline void atomic_add_pair(float* to, float first, float second) {
  to[0] += first;
  to[1] += second;
}

inline void copy_16_async(void* shared, const void* global, bool valid) {
  emulated::start_copy(shared, global, valid);
}
inline void wait_for_copies() { emulated::finish_copies(); }

/// ldmatrix: matrix m's row r is at the address of lane 8 m + r.
inline void load_any(unsigned (&fragment)[4], const void* shared, bool transposed) {
  const auto* mine = static_cast<const std::uint16_t*>(shared);
  const int group = emulated::lane() / 4, pair = emulated::lane() % 4 * 2;
  emulated::exchange(mine, [&](auto row) {
    for (int m = 0; m < 4; ++m) {
      const auto at = [&](int r, int c) { return unsigned{row(8 * m + r)[c]}; };
      fragment[m] = transposed ? at(pair, group) | at(pair + 1, group) << 16
                               : at(group, pair) | at(group, pair + 1) << 16;
    }
  });
}
inline void load_matrices(unsigned (&fragment)[4], const void* shared) {
  load_any(fragment, shared, false);
}
inline void load_matrices_transposed(unsigned (&fragment)[4], const void* shared) {
  load_any(fragment, shared, true);
}

inline float half_of(unsigned pair, int index, __half) {
  return __half2float({static_cast<std::uint16_t>(pair >> 16 * index)});
}
inline float half_of(unsigned pair, int index, __nv_bfloat16) {
  return __bfloat162float({static_cast<std::uint16_t>(pair >> 16 * index)});
}

/// mma.m16n8k16. Where an element lies, by the PTX ISA: of A (row, k) in lane 4 (row % 8) + k % 8 /
/// 2, register row / 8 + 2 (k / 8); of B (k, column) in lane 4 column + k % 8 / 2, register k / 8;
/// of C (row, column) in lane 4 (row % 8) + column / 2, register 2 (row / 8) + column % 2.
template <class Element>
void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, Element kind) {
  struct Operands {
    unsigned a[4], b[2];
  };
  struct Product {
    float of[16][8];
  };
  const Operands mine{{a[0], a[1], a[2], a[3]}, {b0, b1}};
  const auto multiply = [kind](auto of) {
    float left[16][16], right[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      const Operands from = of(lane);
      for (int i = 0; i < 8; ++i) {  // register i / 2, half i % 2
        const int k = lane % 4 * 2 + i % 2 + i / 4 * 8, row = lane / 4 + i / 2 % 2 * 8;
        left[row][k] = half_of(from.a[i / 2], i % 2, kind);
      }
      for (int i = 0; i < 4; ++i)
        right[lane % 4 * 2 + i % 2 + i / 2 * 8][lane / 4] = half_of(from.b[i / 2], i % 2, kind);
    }
    Product product{};
    for (int row = 0; row < 16; ++row)
      for (int k = 0; k < 16; ++k)
        for (int column = 0; column < 8; ++column)
          product.of[row][column] += left[row][k] * right[k][column];
    return product;
  };
  const Product& product = emulated::joined<Product>(mine, multiply);
  for (int i = 0; i < 4; ++i)
    c[i] += product.of[emulated::lane() / 4 + i / 2 * 8][emulated::lane() % 4 * 2 + i % 2];
}

}  // namespace stepcast::calibrate::cuda_kernels

/// WMMA with a layout that no source may rely on: element e of a tile lies in lane 7 e % 32.
namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

constexpr int place_of(int lane, int i) { return (lane * 23) % 32 + 32 * i; }  // 23 = 1/7 mod 32

template <class Use, int, int, int, class T, class Layout = void>
struct fragment {
  static constexpr int num_elements = 8;
  T x[num_elements];
};

template <class Use, class T, class Layout, class From>
void load_tile(fragment<Use, 16, 16, 16, T, Layout>& f, const From* from, unsigned stride,
               bool rows) {
  for (int i = 0; i < 8; ++i) {
    const int place = place_of(emulated::lane(), i);
    const unsigned row = place / 16, column = place % 16;
    f.x[i] = from[rows ? row * stride + column : column * stride + row];
  }
  __syncwarp();
}

template <class Use, class T, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& f, const T* from, unsigned stride) {
  load_tile(f, from, stride, std::is_same_v<Layout, row_major>);
}
inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, float>& f, const float* from,
                             unsigned stride, layout_t layout) {
  load_tile(f, from, stride, layout == mem_row_major);
}

inline void store_matrix_sync(float* to, const fragment<accumulator, 16, 16, 16, float>& f,
                              unsigned stride, layout_t layout) {
  for (int i = 0; i < 8; ++i) {
    const int place = place_of(emulated::lane(), i);
    const unsigned row = place / 16, column = place % 16;
    to[layout == mem_row_major ? row * stride + column : column * stride + row] = f.x[i];
  }
}

inline void fill_fragment(fragment<accumulator, 16, 16, 16, float>& f, float value) {
  std::fill(f.x, f.x + 8, value);
}

template <class A, class B>
void mma_sync(fragment<accumulator, 16, 16, 16, float>& d, const A& a, const B& b,
              const fragment<accumulator, 16, 16, 16, float>& c) {
  struct Operands {
    A first;
    B second;
  };
  const Operands mine{a, b};
  float sums[8];
  emulated::exchange(mine, [&](auto of) {
    const auto lane_of = [](int place) { return place % 32 * 7 % 32; };
    for (int i = 0; i < 8; ++i) {
      const int place = place_of(emulated::lane(), i), row = place / 16, column = place % 16;
      sums[i] = c.x[i];
      for (int k = 0; k < 16; ++k) {
        const int left = row * 16 + k, right = k * 16 + column;
        sums[i] += __half2float(of(lane_of(left)).first.x[left / 32]) *
                   __half2float(of(lane_of(right)).second.x[right / 32]);
      }
    }
  });
  std::copy(std::begin(sums), std::end(sums), d.x);
}

}  // namespace nvcuda::wmma
