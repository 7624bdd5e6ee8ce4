#include "sim/run/host_costs.hpp"

#include "sim/run/step_system.hpp"

namespace stepcast::sim {
namespace {

/// Steps of Megatron-LM's own tests take 1.0 to 1.3 times as long on Grace as on x86 where the host
/// bounds them (validate/published/mlgv.csv, 2026-08). A hot loop of torch's Linear takes 1.75
/// times what software's costs take it for (NVIDIA/TransformerEngine issue 2053, 2025-08): in a
/// step x86 loses its lead (software.host_factor).
constexpr double arm_over_x86 = 1.15;

// What a check takes a rank of its group, over gloo. Several nodes: collectives of 16 to 512 ranks,
// of any operation and size, take 0.31 to 0.41 ms a rank longer, mostly 0.32 (837 network tests of
// nanotron's sweep on p5 nodes, 2024-12 to 2025-01; that TORCH_DISTRIBUTED_DEBUG=DETAIL is the
// reason was inferred). One node: of 160 of its training steps with 2, 4 and 8 tensor ranks 93 tell
// 0.15 to 0.30 ms, their median is 0.22; the others are slower for a further reason that is not
// known. Steps with 16 ranks tell 0.26 ms, those with 32 tell 0.4 and more.
constexpr Duration check_on_one_node = 220_us, check_over_nodes = 320_us;

/// Of collective_checks, by kind of group: a barrier that one host keeps and an exchange of what
/// each is about to call, both of which take a message a rank.
void add_checks(const Scenario& s, std::vector<Duration>& costs) {
  for (int kind = 0; kind < workloads::num_group_kinds; ++kind) {
    const auto group = static_cast<workloads::GroupKind>(kind);
    const workloads::Axis& axis = workloads::axis_of(group);
    const std::int64_t ranks = axis.degree(s.plan);
    const std::int64_t apart = axis.stride != nullptr ? axis.stride(s.plan) : 1;
    const bool one_node = ranks * apart <= s.node.gpus;
    costs[workloads::check_call(group)] = (one_node ? check_on_one_node : check_over_nodes) * ranks;
  }
}

}  // namespace

std::vector<Duration> host_costs_of(const Scenario& s) {
  std::vector<Duration> costs = host_costs_of(s.software);
  const bool arm = s.node.cpu == "arm" && !s.measured_launch;
  const bool replayed = s.software.host.graphs == workloads::Graphs::iteration;
  for (std::size_t call = 0; arm && call < costs.size(); ++call) {
    const bool on_device =
        call == workloads::graph_node_call || (replayed && call != workloads::step_call);
    if (!on_device) costs[call] = to_duration(arm_over_x86 * seconds(costs[call]));
  }
  if (s.software.host.collective_checks && !replayed) add_checks(s, costs);
  return costs;
}

}  // namespace stepcast::sim
