#include "calibrate/kernels/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/device/device.hpp"
#include "calibrate/kernels/check.hpp"

namespace stepcast::calibrate {

DeviceMemory allocate_device(Bytes size) {
  void* memory = nullptr;
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(size.value, 1));
  const cudaError_t result = cudaMalloc(&memory, count);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not sticky: taken away, so that the next launch check does not see it
    std::size_t free = 0, total = 0;
    CUDA_TRY(cudaMemGetInfo(&free, &total));
    throw Unsupported(fmt::format("needs {:.3g} GiB more memory, {:.3g} GiB are free on the GPU",
                                  static_cast<double>(count) / (1 << 30),
                                  static_cast<double>(free) / (1 << 30)));
  }
  CUDA_TRY(result);
  return DeviceMemory(static_cast<std::byte*>(memory));
}

PinnedMemory allocate_pinned(Bytes size) {
  void* memory = nullptr;
  CUDA_TRY(cudaMallocHost(&memory, static_cast<std::size_t>(size.value)));
  return PinnedMemory(static_cast<std::byte*>(memory));
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

Event make_event() {
  cudaEvent_t event = nullptr;
  CUDA_TRY(cudaEventCreate(&event));
  return Event(event);
}

}  // namespace stepcast::calibrate
