#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "calibrate/device/device.hpp"
#include "calibrate/kernels/check.hpp"
#include "calibrate/kernels/random.hpp"

namespace stepcast::calibrate {
namespace {

template <class T>
__host__ __device__ T rounded(float value);
template <>
__host__ __device__ float rounded<float>(float value) {
  return value;
}
template <>
__host__ __device__ __nv_bfloat16 rounded<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__host__ __device__ __half rounded<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__host__ __device__ __nv_fp8_e4m3 rounded<__nv_fp8_e4m3>(float value) {
  return __nv_fp8_e4m3(value);
}

template <class T>
__global__ void fill(T* tensor, std::int64_t count, std::uint64_t seed, Range range) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    tensor[i] =
        rounded<T>(range.middle + range.half * random_value(seed, static_cast<std::uint64_t>(i)));
}

/// Calls `use` with a value of the type that stands for the element.
template <class Use>
auto with_type(Element element, Use use) {
  switch (element) {
    case Element::fp32:
      return use(float{});
    case Element::bf16:
      return use(__nv_bfloat16{});
    case Element::fp16:
      return use(__half{});
    case Element::fp8:
      return use(__nv_fp8_e4m3{});
  }
  throw BrokenPromise("an element type without a case");
}

}  // namespace

Element element_of(std::string_view dtype) {
  if (dtype == "fp32" || dtype == "tf32") return Element::fp32;
  if (dtype == "bf16") return Element::bf16;
  if (dtype == "fp16") return Element::fp16;
  if (dtype == "fp8") return Element::fp8;
  throw Unsupported("unknown dtype " + std::string(dtype));
}

std::int64_t size_of(Element element) {
  return with_type(element, [](auto like) { return static_cast<std::int64_t>(sizeof(like)); });
}

double stored_value(std::uint64_t seed, std::uint64_t index, Element element) {
  return with_type(element, [&](auto like) {
    return static_cast<double>(
        static_cast<float>(rounded<decltype(like)>(random_value(seed, index))));
  });
}

double read_element(const void* tensor, std::int64_t index, Element element) {
  return with_type(element, [&](auto like) {
    std::memcpy(&like,
                static_cast<const char*>(tensor) + index * static_cast<std::int64_t>(sizeof(like)),
                sizeof(like));
    return static_cast<double>(static_cast<float>(like));
  });
}

void fill_random(void* tensor, Element element, std::int64_t count, std::uint64_t seed,
                 cudaStream_t stream, Range range) {
  if (count == 0) return;
  constexpr int threads = 256;
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>((count + threads - 1) / threads, 4096));
  with_type(element, [&](auto like) {
    using T = decltype(like);
    fill<T><<<blocks, threads, 0, stream>>>(static_cast<T*>(tensor), count, seed, range);
  });
  CUDA_TRY(cudaGetLastError());
}

}  // namespace stepcast::calibrate
