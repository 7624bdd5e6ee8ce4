#include "calibrate/cuda/device.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "calibrate/cuda/collective.hpp"
#include "calibrate/cuda/copy.hpp"
#include "calibrate/cuda/gemm.hpp"
#include "calibrate/cuda/kernel_task.hpp"
#include "calibrate/cuda/matmul.hpp"
#include "calibrate/kernels/check.hpp"
#include "calibrate/kernels/kernels.hpp"

namespace stepcast::calibrate {
namespace {

std::string cuda_version(int version) {  // 13000: 13.0
  return version == 0 ? "" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::int64_t num_gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(CudaOptions options)
      : context_(options.gpu), collectives_(complete(std::move(options.team))) {
    if (!context_.nvml) fmt::print(stderr, "warning: {}\n", context_.nvml_missing);
  }

  DeviceFacts facts() const override;
  std::unique_ptr<Prepared> prepare(const Task& task, std::uint64_t seed) override;
  double watts_of(Prepared& task, double seconds) override;
  double idle_watts(double seconds) override;

 private:
  static TeamOptions complete(TeamOptions team) {
    if (team.gpus == 0) team.gpus = num_gpus();
    return team;
  }

  std::unique_ptr<Prepared> make(const GemmTask& task, std::uint64_t seed) {
    return make_cuda_gemm(context_, task, seed);
  }
  std::unique_ptr<Prepared> make(const AttentionTask& task, std::uint64_t seed) {
    return make_cuda_attention(context_, task, seed);
  }
  std::unique_ptr<Prepared> make(const ElementwiseTask& task, std::uint64_t seed) {
    return make_cuda_elementwise(context_, task, seed);
  }
  std::unique_ptr<Prepared> make(const CopyTask& task, std::uint64_t seed) {
    return make_cuda_copy(context_, task, seed);
  }
  std::unique_ptr<Prepared> make(const LaunchTask&, std::uint64_t) {
    return make_cuda_launches(context_);
  }
  std::unique_ptr<Prepared> make(const CollectiveTask& task, std::uint64_t seed) {
    return collectives_.make(task, seed);
  }
  std::unique_ptr<Prepared> make(const OverlapTask& task, std::uint64_t seed) {
    return collectives_.make(task, seed);
  }

  CudaContext context_;
  Collectives collectives_;
};

DeviceFacts CudaDevice::facts() const {
  cudaDeviceProp properties{};
  CUDA_TRY(cudaGetDeviceProperties(&properties, context_.gpu));
  int runtime = 0, driver = 0;
  CUDA_TRY(cudaRuntimeGetVersion(&runtime));
  CUDA_TRY(cudaDriverGetVersion(&driver));
  const auto& nvml = context_.nvml;
  DeviceFacts facts;
  facts.name = properties.name;
  facts.driver = fmt::format("{}{}CUDA {}", nvml ? nvml->driver_version() : "", nvml ? ", " : "",
                             cuda_version(driver));
  facts.runtime = "CUDA " + cuda_version(runtime);
  facts.gemm_library = cublas_version();
  facts.collective_library = collectives_.library();
  int memory_khz = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, context_.gpu));
  facts.clocks = fmt::format("SM {:.0f} MHz, memory {:.0f} MHz", context_.default_mhz,
                             static_cast<double>(memory_khz) * 1e-3);
  facts.ranks = collectives_.num_ranks();
  facts.nodes = collectives_.num_nodes();
  facts.cache = context_.cache;
  return facts;
}

std::unique_ptr<Prepared> CudaDevice::prepare(const Task& task, std::uint64_t seed) {
  CUDA_TRY(cudaSetDevice(context_.gpu));  // of this thread
  try {
    return std::visit([&](const auto& one) { return make(one, seed); }, task);
  } catch (const cuda_kernels::LaunchError& error) {
    throw InputError(to_text(task), error.what());
  } catch (const InputError& error) {
    throw InputError(to_text(task), error.what());
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The driver's energy counter where there is one (since Volta), else the mean of its power
/// readings, while `work` runs again and again.
double mean_watts(const Nvml& nvml, double wanted, const std::function<void()>& work) {
  double sum = 0;
  std::int64_t readings = 0;
  const auto before = nvml.energy();
  const auto start = std::chrono::steady_clock::now();
  while (seconds_since(start) < wanted) {
    work();
    if (const auto power = nvml.power()) {
      sum += power->value;
      ++readings;
    }
  }
  const double elapsed = seconds_since(start);
  const auto after = nvml.energy();
  if (before && after && *after > *before) return (*after - *before).value / elapsed;
  return readings > 0 ? sum / static_cast<double>(readings) : -1;
}

/// A tenth of the time goes first, so that power has risen.
double CudaDevice::watts_of(Prepared& task, double wanted) {
  if (!context_.nvml) return -1;
  const double one = std::max(seconds(task.run(10, Cache::cold).total) / 10, 1e-7);
  const auto repetitions = static_cast<std::int64_t>(std::clamp(0.05 / one, 1.0, 1e5));
  const auto run = [&] { task.run(repetitions, Cache::cold); };
  mean_watts(*context_.nvml, 0.1 * wanted, run);
  return mean_watts(*context_.nvml, wanted, run);
}

/// With a context, as a training process has one. Clocks and power take some seconds to fall.
double CudaDevice::idle_watts(double wanted) {
  if (!context_.nvml) return -1;
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  mean_watts(*context_.nvml, 1.5 * wanted, wait);
  return mean_watts(*context_.nvml, wanted, wait);
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(const CudaOptions& options) {
  return std::make_unique<CudaDevice>(options);
}

}  // namespace stepcast::calibrate
