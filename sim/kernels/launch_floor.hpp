// The least time of a kernel.
#pragma once

namespace stepcast::sim {

inline constexpr double launch_floor = 3e-6;  // s: a kernel that does next to nothing, 2-4 us

}  // namespace stepcast::sim
