// What calls cost the host of a scenario's node: the software's costs, at the pace of its CPU.
#pragma once

#include <vector>

#include "engine/units.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// By workloads::HostCost. The software's costs are those of x86 hosts; an Arm host (Grace) takes
/// 1.75 times as long, unless the costs were measured on it.
std::vector<Duration> host_costs_of(const Scenario&);

}  // namespace stepcast::sim
