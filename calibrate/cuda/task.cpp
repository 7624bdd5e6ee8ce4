#include "calibrate/cuda/task.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "calibrate/cuda/matmul.hpp"
#include "calibrate/kernels/check.hpp"

namespace stepcast::calibrate {
namespace {

int choose(int gpu) {
  int num_gpus = 0;
  const cudaError_t result = cudaGetDeviceCount(&num_gpus);
  if (result != cudaSuccess)
    throw InputError("--device cuda", cudaGetErrorString(result), "--device host needs no GPU");
  if (gpu < 0 || gpu >= num_gpus)
    throw InputError("--device cuda", "there is no GPU " + std::to_string(gpu),
                     "GPUs here: " + std::to_string(num_gpus));
  CUDA_TRY(cudaSetDevice(gpu));
  return gpu;
}

int attribute(cudaDeviceAttr which, int gpu) {
  int value = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&value, which, gpu));
  return value;
}

}  // namespace

CudaContext::CudaContext(int gpu_index)
    : gpu(choose(gpu_index)),
      compute_capability(attribute(cudaDevAttrComputeCapabilityMajor, gpu) * 10 +
                         attribute(cudaDevAttrComputeCapabilityMinor, gpu)),
      cache(attribute(cudaDevAttrL2CacheSize, gpu)),
      default_mhz(attribute(cudaDevAttrClockRate, gpu) * 1e-3),
      stream(make_stream()),
      timer(stream.get()),
      workspace(allocate_device(matmul_workspace)) {
  std::array<char, 32> address{};
  CUDA_TRY(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), gpu));
  try {
    nvml.emplace(address.data());
  } catch (const Unsupported& error) {
    nvml_missing = error.what();
  }
}

bool CudaContext::throttled_now() const {
  if (!nvml) return false;
  const auto mhz = nvml->sm_clock_mhz();
  const auto reasons = nvml->clock_reasons();
  return mhz && throttled(*mhz, default_mhz, reasons.value_or(ClockReasons{}));
}

Batch CudaTask::run(std::int64_t repetitions, Cache cache) {
  Batch batch;
  const auto launch = [&](std::int64_t) {
    launch_on(context_.stream.get(), cache == Cache::cold ? next_set_++ % num_sets_ : 0);
  };
  batch.total =
      context_.timer.time(repetitions, launch, [&] { batch.throttled = context_.throttled_now(); });
  return batch;
}

void CudaTask::set_footprint(Bytes footprint) {
  const std::int64_t wanted = 2 * context_.cache.value;
  const std::int64_t one = footprint.value > 0 ? footprint.value : 1;
  // A set of twice the cache pushes itself out; NVIDIA's guideline asks for two all the same.
  num_sets_ = one >= 2 * wanted ? 1 : std::max<std::int64_t>(2, (wanted + one - 1) / one);
}

void CudaTask::warm_up() {
  for (std::int64_t set = 0; set < num_sets_; ++set) {
    launch_on(context_.stream.get(), set);
    if (set % 64 == 63) CUDA_TRY(cudaStreamSynchronize(context_.stream.get()));
  }
  CUDA_TRY(cudaStreamSynchronize(context_.stream.get()));
}

}  // namespace stepcast::calibrate
