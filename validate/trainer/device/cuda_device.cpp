#include "validate/trainer/device/cuda_device.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "calibrate/cuda/matmul.hpp"
#include "calibrate/device/device.hpp"
#include "calibrate/kernels/check.hpp"
#include "calibrate/kernels/memory.hpp"
#include "validate/trainer/device/cuda_lanes.hpp"

namespace stepcast::validate {
namespace {

using calibrate::cuda_kernels::ElementType;

calibrate::Element element_of(ElementType type) {
  switch (type) {
    case ElementType::bf16:
      return calibrate::Element::bf16;
    case ElementType::fp16:
      return calibrate::Element::fp16;
    case ElementType::fp32:
      return calibrate::Element::fp32;
  }
  throw BrokenPromise("an element type without a case");
}

/// The largest power of two that divides all addresses, 256 at most.
std::uint32_t alignment_of(std::initializer_list<const void*> pointers) {
  std::uintptr_t bits = 256;
  for (const void* pointer : pointers) bits |= reinterpret_cast<std::uintptr_t>(pointer);
  return 1U << std::countr_zero(bits);
}

/// Pinned memory that uploads pass through, so that the caller's may change at once and the host
/// does not wait: a ring of pieces, each free again when its copy is done.
class Staging {
 public:
  Staging() : memory_(calibrate::allocate_pinned(Bytes(num_pieces * piece_size))) {
    for (std::size_t i = 0; i < num_pieces; ++i) done_.push_back(calibrate::make_event());
  }

  void send(std::byte* device, const std::byte* host, std::size_t bytes, cudaStream_t stream) {
    for (std::size_t sent = 0; sent < bytes; sent += piece_size) {
      const std::size_t piece = next_++ % num_pieces;
      CUDA_TRY(cudaEventSynchronize(done_[piece].get()));  // at once where it was never recorded
      std::byte* from = memory_.get() + piece * piece_size;
      const std::size_t size = std::min(bytes - sent, piece_size);
      std::memcpy(from, host + sent, size);
      CUDA_TRY(cudaMemcpyAsync(device + sent, from, size, cudaMemcpyHostToDevice, stream));
      CUDA_TRY(cudaEventRecord(done_[piece].get(), stream));
    }
  }

 private:
  static constexpr std::size_t num_pieces = 64, piece_size = 256 * 1024;
  calibrate::PinnedMemory memory_;
  std::vector<calibrate::Event> done_;
  std::size_t next_ = 0;
};

class RuntimeDevice final : public CudaDevice {
 public:
  RuntimeDevice(int gpu, CudaLanes& lanes) : lanes_(lanes), setup_(stream_on(gpu)) {}

  std::byte* allocate(std::size_t bytes) override;
  Release release() const override {
    return [](void* memory) { cudaFree(memory); };
  }
  void upload(std::byte* device, const std::byte* host, std::size_t bytes) override {
    staging_.send(device, host, bytes, stream());
  }
  void download(std::byte* host, const std::byte* device, std::size_t bytes) override;
  void clear(std::byte* device, std::size_t bytes) override {
    CUDA_TRY(cudaMemsetAsync(device, 0, bytes, stream()));
  }
  void gemm(ElementType type, void* c, const void* a, const void* b,
            const GemmSizes& sizes) override;
  cudaStream_t stream() const override { return lanes_.stream(); }

 private:
  static calibrate::Stream stream_on(int gpu) {
    CUDA_TRY(cudaSetDevice(gpu));
    return calibrate::make_stream();
  }

  CudaLanes& lanes_;
  calibrate::Stream setup_;  // of what is done before the lanes begin
  Staging staging_;
  static constexpr std::size_t landing_size = 4 * 1024 * 1024;
  calibrate::PinnedMemory landing_ = calibrate::allocate_pinned(Bytes(landing_size));
  calibrate::CublasLt library_ = calibrate::make_cublas_lt();
  std::map<calibrate::MatmulShape, calibrate::Matmul> products_;
  std::map<cudaStream_t, calibrate::DeviceMemory> workspaces_;  // of products
};

std::byte* RuntimeDevice::allocate(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t result = cudaMalloc(&memory, bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not sticky: taken away, so that the next launch check does not see it
    std::size_t free = 0, total = 0;
    CUDA_TRY(cudaMemGetInfo(&free, &total));
    constexpr double gib = 1 << 30;
    throw InputError("the GPU",
                     fmt::format("{:.3g} GiB more do not fit: {:.3g} of {:.3g} GiB are free",
                                 static_cast<double>(bytes) / gib, static_cast<double>(free) / gib,
                                 static_cast<double>(total) / gib),
                     "a smaller micro-batch, recomputation or more ranks need less memory");
  }
  CUDA_TRY(result);
  CUDA_TRY(cudaMemsetAsync(memory, 0, bytes, setup_.get()));
  CUDA_TRY(cudaStreamSynchronize(setup_.get()));  // whatever lane reads it first
  return static_cast<std::byte*>(memory);
}

/// The lanes wait, not CUDA: they notice a peer that is gone.
void RuntimeDevice::download(std::byte* host, const std::byte* device, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += landing_size) {
    const std::size_t size = std::min(bytes - done, landing_size);
    CUDA_TRY(
        cudaMemcpyAsync(landing_.get(), device + done, size, cudaMemcpyDeviceToHost, stream()));
    lanes_.synchronize();
    std::memcpy(host + done, landing_.get(), size);
  }
}

/// The library's first proposal, as calibrate's default rows are timed.
void RuntimeDevice::gemm(ElementType type, void* c, const void* a, const void* b,
                         const GemmSizes& s) {
  const calibrate::MatmulShape shape{.input = element_of(type),
                                     .output = element_of(type),
                                     .m = s.m,
                                     .n = s.n,
                                     .k = s.k,
                                     .layout = s.layout,
                                     .accumulate = s.accumulate,
                                     .alignment = alignment_of({a, b, c})};
  try {
    const auto product = products_.try_emplace(shape, library_.get(), shape).first;
    calibrate::DeviceMemory& workspace = workspaces_[stream()];
    if (!workspace) workspace = calibrate::allocate_device(calibrate::matmul_workspace);
    product->second.launch({c, a, b}, workspace.get(), stream());
  } catch (const calibrate::Unsupported& error) {
    throw InputError("the GPU", error.what(),
                     fmt::format("of a product of {} x {} x {}", s.m, s.n, s.k));
  }
}

}  // namespace

std::unique_ptr<CudaDevice> make_cuda_device(int gpu, CudaLanes& lanes) {
  return std::make_unique<RuntimeDevice>(gpu, lanes);
}

}  // namespace stepcast::validate
