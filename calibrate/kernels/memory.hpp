// Owners of what CUDA hands out: device and pinned memory, streams, events. Knows no task.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "engine/units.hpp"

namespace stepcast::calibrate {

struct CudaFree {
  void operator()(std::byte* memory) const { cudaFree(memory); }
  void operator()(CUstream_st* stream) const { cudaStreamDestroy(stream); }
  void operator()(CUevent_st* event) const { cudaEventDestroy(event); }
};
struct CudaFreeHost {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};

using DeviceMemory = std::unique_ptr<std::byte, CudaFree>;
using PinnedMemory = std::unique_ptr<std::byte, CudaFreeHost>;
using Stream = std::unique_ptr<CUstream_st, CudaFree>;
using Event = std::unique_ptr<CUevent_st, CudaFree>;

/// Throws Unsupported, saying how much is free, where the GPU has not that much.
DeviceMemory allocate_device(Bytes size);
PinnedMemory allocate_pinned(Bytes size);
Stream make_stream();
Event make_event();

}  // namespace stepcast::calibrate
