// The least time of a kernel.
#pragma once

#include <algorithm>

#include "topology/specs.hpp"

namespace stepcast::sim {

/// Seconds of a kernel that does next to nothing: 2 to 4 us (recalled, 2026).
inline constexpr double launch_floor = 3e-6;

inline double launch_floor_of(const topology::GpuSpec& gpu) {
  return launch_floor * gpu.kernel_floor;
}

/// A measured time whose part above the floor takes `slowdown` as long.
inline double above_floor(double seconds, double slowdown, const topology::GpuSpec& gpu) {
  const double fixed = std::min(seconds, launch_floor);
  return seconds + fixed * (gpu.kernel_floor - 1.0) + (seconds - fixed) * (slowdown - 1.0);
}

}  // namespace stepcast::sim
