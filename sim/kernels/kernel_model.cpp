#include "sim/kernels/kernel_model.hpp"

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

// A streaming kernel saturates HBM before it fills all SMs: about three quarters of them do
// (engineering judgement, 2026-11: streaming benchmarks level off there; to be measured by
// stepcast-calibrate).
constexpr double sms_that_saturate_memory = 0.75;

// A collective never takes all of the memory bandwidth or all SMs from a kernel.
constexpr double most_traffic = 0.95;

double waves(std::int64_t tiles, std::int64_t sms) {
  return static_cast<double>(ceil_div(tiles, sms));
}

}  // namespace

double stretch(const KernelTime& kernel, const topology::GpuSpec& gpu, std::int64_t ctas,
               BytesPerSecond memory_traffic) {
  expects(gpu.sms > 0 && ctas >= 0 && memory_traffic.value >= 0, "SMs, and nothing negative held");
  const std::int64_t left = std::max<std::int64_t>(1, gpu.sms - ctas);
  const double bandwidth_left = 1.0 - std::min(most_traffic, memory_traffic / gpu.memory_bandwidth);
  if (kernel.tiles > 0) {
    // NCCL's blocks do not share an SM with blocks of this size: ceil(tiles / SMs left) waves
    // instead of ceil(tiles / SMs). Bandwidth hurts only what no longer fits beside the traffic.
    const double by_sms = waves(kernel.tiles, left) / waves(kernel.tiles, gpu.sms);
    return std::max({1.0, by_sms, kernel.memory_fraction / bandwidth_left});
  }
  const double needed = sms_that_saturate_memory * static_cast<double>(gpu.sms);
  return std::max({1.0, needed / static_cast<double>(left), 1.0 / bandwidth_left});
}

}  // namespace stepcast::sim
