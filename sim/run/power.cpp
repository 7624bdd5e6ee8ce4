#include "sim/run/power.hpp"

#include <algorithm>

namespace stepcast::sim {

Watts mean_power(const topology::GpuSpec& gpu, const Utilization& utilization) {
  constexpr double tensor_share = 0.80, memory_share = 0.20, communication_share = 0.125;
  const double tensor = tensor_share * held_back(gpu).tensor_power;
  const Watts busy = gpu.tdp * (tensor * utilization.tensor + memory_share * utilization.memory +
                                communication_share * utilization.communication);
  return std::min(power_limit(gpu), gpu.idle + context_power(gpu) + busy);
}

}  // namespace stepcast::sim
