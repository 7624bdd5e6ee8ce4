// What the trainer's kernels need of a GPU beside the kernels themselves: memory, copies, matrix
// products, the stream at hand. The tests put a processor core in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "calibrate/host/gemm.hpp"
#include "calibrate/kernels/kernels.hpp"
#include "engine/units.hpp"
#include "validate/trainer/device/kernels.hpp"

namespace stepcast::validate {

class CudaDevice {
 public:
  virtual ~CudaDevice() = default;

  /// Zeroed, 256-byte aligned. Throws InputError, saying how much is free, where it does not fit.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  using Release = void (*)(void*);
  virtual Release release() const = 0;

  /// Onto the stream at hand; `host` may be changed on return.
  virtual void upload(std::byte* device, const std::byte* host, std::size_t bytes) = 0;
  /// Waits for the stream at hand, if not for all.
  virtual void download(std::byte* host, const std::byte* device, std::size_t bytes) = 0;
  virtual void clear(std::byte* device, std::size_t bytes) = 0;

  /// C (m, n) = op(A) op(B), all row-major of that type, summed in fp32.
  virtual void gemm(calibrate::cuda_kernels::ElementType type, void* c, const void* a,
                    const void* b, const calibrate::host::GemmSizes& sizes) = 0;

  /// Of the lane that was taken last.
  virtual cudaStream_t stream() const = 0;
};

class CudaLanes;  // cuda_lanes.hpp: Lanes with the stream() of the lane that was taken last

/// That GPU, which becomes the calling thread's. `lanes` outlive it.
std::unique_ptr<CudaDevice> make_cuda_device(int gpu, CudaLanes& lanes);

/// Real is Bfloat16 or Half.
template <class Real>
std::unique_ptr<Kernels<Real>> make_cuda_kernels(std::unique_ptr<CudaDevice> device,
                                                 std::int64_t sequence, std::int64_t head_dim);

}  // namespace stepcast::validate
