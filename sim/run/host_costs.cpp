#include "sim/run/host_costs.hpp"

#include "sim/run/step_system.hpp"

namespace stepcast::sim {
namespace {

/// torch's Linear takes 37.1 us of a GB200's host and 33.2 of a GH200's, and 13.5 of a DGX H100's
/// (NVIDIA/TransformerEngine issue 2053, 2025-08); the software's costs take such a call for 20 us,
/// the median of four hosts (scenarios/software/megatron-core.toml): 35.1 / 20.
constexpr double arm_over_x86 = 1.75;

}  // namespace

std::vector<Duration> host_costs_of(const Scenario& s) {
  std::vector<Duration> costs = host_costs_of(s.software);
  if (s.node.cpu != "arm" || s.measured_launch) return costs;
  const bool replayed = s.software.host.graphs == workloads::Graphs::iteration;
  for (std::size_t call = 0; call < costs.size(); ++call) {
    const bool on_device =
        call == workloads::graph_node_call || (replayed && call != workloads::step_call);
    if (!on_device) costs[call] = to_duration(arm_over_x86 * seconds(costs[call]));
  }
  return costs;
}

}  // namespace stepcast::sim
