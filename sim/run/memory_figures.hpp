// The three figures of a scenario's memory, and whether its plan fits.
#pragma once

#include <optional>
#include <string>

#include "sim/scenario/scenario.hpp"
#include "workloads/memory/figures.hpp"

namespace stepcast::sim {

workloads::MemoryFigures memory_figures(const Scenario& scenario);

/// The GPU has what the fullest rank needs.
bool fits(const Scenario& scenario, const workloads::MemoryFigures& figures);

/// Of a plan that fits: that PyTorch's allocator will have to give blocks back; else empty.
std::string reserve_warning(const Scenario& scenario, const workloads::MemoryFigures& figures);

}  // namespace stepcast::sim
