#include "sim/scenario/noise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/arithmetic.hpp"

namespace stepcast::sim {
namespace {

// A stream of its own: those of the kernels are numbered by rank and lane.
constexpr std::uint64_t gpu_stream = std::numeric_limits<std::uint64_t>::max();

}  // namespace

/// Blom 1958: the mean of the largest lies close to the quantile (n - 0.375) / (n + 0.25).
double expected_largest(std::int64_t n) {
  const auto count = static_cast<double>(n);
  return n <= 1 ? 0.0 : normal_value((count - 0.375) / (count + 0.25));
}

double pace(const Noise& noise, std::int64_t gpus, const topology::Architecture& architecture) {
  const auto of = [&](std::int64_t n) { return 1.0 + noise.pace_sigma * expected_largest(n); };
  return of(gpus) / of(architecture.sustained_gpus);
}

void add_noise(const Noise& noise, std::uint64_t seed, std::int64_t gpus_per_node,
               engine::System& system) {
  if (noise.kernel_sigma > 0.0) system.jitter = {noise.distribution, noise.kernel_sigma, seed};
  if (noise.gpu_sigma <= 0.0 && noise.stragglers.empty()) return;
  system.slowness.assign(system.num_ranks(), 1.0);
  const engine::JitterSource spread({noise.distribution, noise.gpu_sigma, seed});
  if (noise.gpu_sigma > 0.0)
    for (std::uint32_t r = 0; r < system.num_ranks(); ++r)
      system.slowness[r] = spread.factor(gpu_stream, r);
  for (const Straggler& straggler : noise.stragglers) {
    const std::int64_t first = straggler.index * (straggler.node ? gpus_per_node : 1);
    const std::int64_t last = first + (straggler.node ? gpus_per_node : 1);
    for (std::int64_t r = first; r < std::min<std::int64_t>(last, system.num_ranks()); ++r)
      system.slowness.at(static_cast<std::size_t>(r)) *= straggler.slowdown;
  }
}

}  // namespace stepcast::sim
