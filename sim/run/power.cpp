#include "sim/run/power.hpp"

#include <algorithm>

namespace stepcast::sim {

namespace {

constexpr double context_share = 0.07;

}  // namespace

Watts context_power(const topology::GpuSpec& gpu) { return gpu.tdp * context_share; }

Watts mean_power(const topology::GpuSpec& gpu, const Utilization& utilization) {
  constexpr double tensor_share = 0.80, memory_share = 0.20, communication_share = 0.125;
  const Watts busy = gpu.tdp * (context_share + tensor_share * utilization.tensor +
                                memory_share * utilization.memory +
                                communication_share * utilization.communication);
  return std::min(gpu.tdp, gpu.idle + busy);
}

}  // namespace stepcast::sim
