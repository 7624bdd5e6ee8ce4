#include "tests/calibrate/emulated_cuda.hpp"
// It comes first: it gives the names of CUDA.
#include "tests/validate/emulated_device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "validate/trainer/device/cuda_device.hpp"

namespace stepcast::validate {
namespace {

using calibrate::cuda_kernels::ElementType;

template <class Real>
std::vector<float> widened(const void* from, std::size_t size) {
  const auto* numbers = static_cast<const Real*>(from);
  std::vector<float> result(size);
  std::transform(numbers, numbers + size, result.begin(), [](Real x) { return to_float(x); });
  return result;
}

/// Products in fp32 of what 16 bits hold, rounded once.
template <class Real>
void multiply(void* c, const void* a, const void* b, const GemmSizes& s) {
  const auto size = [](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(rows * columns);
  };
  std::vector<float> product =
      s.accumulate ? widened<Real>(c, size(s.m, s.n)) : std::vector<float>(size(s.m, s.n));
  calibrate::host::gemm(product, widened<Real>(a, size(s.m, s.k)), widened<Real>(b, size(s.n, s.k)),
                        s);
  std::transform(product.begin(), product.end(), static_cast<Real*>(c), rounded<Real>);
}

class EmulatedDevice final : public CudaDevice {
 public:
  std::byte* allocate(std::size_t bytes) override {
    const std::size_t size = (bytes + 255) / 256 * 256;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(256, size));
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, size);
    return memory;
  }
  Release release() const override { return std::free; }
  void upload(std::byte* device, const std::byte* host, std::size_t bytes) override {
    std::memcpy(device, host, bytes);
  }
  void download(std::byte* host, const std::byte* device, std::size_t bytes) override {
    std::memcpy(host, device, bytes);
  }
  void clear(std::byte* device, std::size_t bytes) override { std::memset(device, 0, bytes); }
  void gemm(ElementType type, void* c, const void* a, const void* b,
            const GemmSizes& sizes) override {
    (type == ElementType::bf16 ? multiply<Bfloat16> : multiply<Half>)(c, a, b, sizes);
  }
  cudaStream_t stream() const override { return nullptr; }
};

}  // namespace

template <class Real>
std::unique_ptr<Kernels<Real>> make_emulated_kernels(std::int64_t sequence, std::int64_t head_dim) {
  return make_cuda_kernels<Real>(std::make_unique<EmulatedDevice>(), sequence, head_dim);
}

void emulate(EmulatedGpu gpu) {
  emulated::device = {};
  if (gpu == EmulatedGpu::h100) return;
  emulated::device.capability_major = 7;
  emulated::device.shared_bytes_of_block = 96 * 1024;
}

template std::unique_ptr<Kernels<Bfloat16>> make_emulated_kernels(std::int64_t, std::int64_t);
template std::unique_ptr<Kernels<Half>> make_emulated_kernels(std::int64_t, std::int64_t);

}  // namespace stepcast::validate
