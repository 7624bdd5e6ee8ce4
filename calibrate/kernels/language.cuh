// What the kernels need of CUDA beside plain C++: 16-bit floats, packs of elements that travel in
// one load, sums over a warp and a block, a checked launch. The tests define
// STEPCAST_CUDA_LANGUAGE and supply the first part for the host
// (tests/calibrate/emulated_cuda.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

#ifndef STEPCAST_CUDA_LANGUAGE
#define STEPCAST_CUDA_LANGUAGE
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "calibrate/kernels/kernels.hpp"

namespace stepcast::calibrate::cuda_kernels {

struct LaunchShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

inline void check(cudaError_t result, const char* name) {
  if (result == cudaSuccess) return;
  throw LaunchError(std::string(name) + ": " + cudaGetErrorString(result));
}

/// More than 48 KiB of shared memory a block must be asked for, once per kernel and device; asking
/// again is cheap.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const LaunchShape& shape,
            Arguments... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;  // nothing to do
  if (shape.shared_bytes > 48 * 1024)
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.shared_bytes)),
          name);
  kernel<<<shape.grid, shape.block, shape.shared_bytes, shape.stream>>>(arguments...);
  check(cudaGetLastError(), name);
}

inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  return value;
}

/// The block's dynamic shared memory, 128-byte aligned.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<T*>(dynamic_shared_bytes);
}

/// Two floats rounded to 16 bits, the first in the lower half.
__device__ inline unsigned pack(float low, float high, __half) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}
__device__ inline unsigned pack(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

/// 16 bytes to global memory. In assembly, since nvcc takes packs of 16-bit elements apart and
/// stores them one or two at a time.
__device__ inline void store_16_bytes(void* global, const void* from) {
  uint4 words;
  memcpy(&words, from, sizeof(words));
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(global), "r"(words.x), "r"(words.y),
               "r"(words.z), "r"(words.w)
               : "memory");
}

/// 2^x to about 2 units in the last place; denormal results are 0.
__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Adds two neighbouring floats; `to` is 8-byte aligned. One instruction from sm_90 on.
__device__ inline void atomic_add_pair(float* to, float first, float second) {
#if __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float2*>(to), make_float2(first, second));
#else
  atomicAdd(to, first);
  atomicAdd(to + 1, second);
#endif
}

}  // namespace stepcast::calibrate::cuda_kernels
#endif

namespace stepcast::calibrate::cuda_kernels {

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

__device__ inline void assign(float& to, float x) { to = x; }
__device__ inline void assign(__half& to, float x) { to = __float2half_rn(x); }
__device__ inline void assign(__nv_bfloat16& to, float x) { to = __float2bfloat16_rn(x); }

/// Elements that are loaded and stored together: of 16 bytes, or several times that.
template <class T, int kSize>
struct alignas(sizeof(T) * kSize < 16 ? sizeof(T) * kSize : 16) Pack {
  T element[kSize];
};

template <int kSize, class T>
__device__ Pack<T, kSize> load(const T* from) {
  return *reinterpret_cast<const Pack<T, kSize>*>(from);
}

/// To global memory.
template <int kSize, class T>
__device__ void store(T* to, const Pack<T, kSize>& pack) {
  if constexpr (sizeof(pack) % 16 == 0) {
#pragma unroll
    for (std::size_t i = 0; i < sizeof(pack); i += 16)
      store_16_bytes(reinterpret_cast<char*>(to) + i, reinterpret_cast<const char*>(&pack) + i);
  } else {
    *reinterpret_cast<Pack<T, kSize>*>(to) = pack;
  }
}

constexpr int kWarpSize = 32;

struct Add {
  static constexpr float kNothing = 0.0F;
  __device__ static float of(float a, float b) { return a + b; }
};
struct Largest {
  static constexpr float kNothing = -INFINITY;
  __device__ static float of(float a, float b) { return fmaxf(a, b); }
};

/// Of the 32 lanes, in every lane.
template <class Join>
__device__ float warp_reduce(float x) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
    x = Join::of(x, __shfl_xor_sync(0xffffffffU, x, distance));
  return x;
}

/// Of the block, in every thread. All threads call it; whole warps.
template <class Join>
__device__ float block_reduce(float x) {
  __shared__ float of_warp[kWarpSize];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int num_warps = static_cast<int>(blockDim.x) / kWarpSize;
  x = warp_reduce<Join>(x);
  __syncthreads();  // an earlier result has been read
  if (lane == 0) of_warp[warp] = x;
  __syncthreads();
  return warp_reduce<Join>(lane < num_warps ? of_warp[lane] : Join::kNothing);
}

__device__ inline float warp_sum(float x) { return warp_reduce<Add>(x); }
__device__ inline float block_sum(float x) { return block_reduce<Add>(x); }

/// Calls f with a value of the element type's C++ type.
template <class F>
void with_type(ElementType type, F f) {
  switch (type) {
    case ElementType::bf16:
      return f(__nv_bfloat16{});
    case ElementType::fp16:
      return f(__half{});
    case ElementType::fp32:
      return f(float{});
  }
}

inline bool aligned(std::initializer_list<const void*> pointers) {
  for (const void* pointer : pointers)
    if (reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0) return false;
  return true;
}

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace stepcast::calibrate::cuda_kernels
