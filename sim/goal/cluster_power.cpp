#include "sim/goal/cluster_power.hpp"

#include <algorithm>

#include "topology/fabric_layout.hpp"

namespace stepcast::sim {
namespace {

constexpr double seen_of_rated = 8.4 / 10.2;
constexpr double rest_of_tdp = 0.5;
constexpr double rest_when_idle = 0.67;

/// The nodes' own part; a node of which some GPUs are used is used whole.
Watts rest_of_nodes(const Scenario& s) {
  const topology::NodeSpec& node = s.node;
  const Watts gpus = node.gpu.tdp * static_cast<double>(node.gpus);
  const Watts rest =
      node.max_power.value > 0 ? node.max_power * seen_of_rated - gpus : gpus * rest_of_tdp;
  return std::max(rest, Watts{}) * static_cast<double>(s.nodes);
}

Watts network_power(const Scenario& s) {
  const NetworkParts parts = network_parts(s);
  return s.fabric.switch_power * static_cast<double>(parts.switches) +
         s.fabric.transceiver_power * static_cast<double>(parts.ports);
}

}  // namespace

NetworkParts network_parts(const Scenario& s) {
  NetworkParts out;
  if (s.nodes < 2) return out;
  topology::FabricSpec own = s.fabric;
  own.job = {};  // of a larger fabric its share
  const topology::FabricLayout layout = topology::lay_out_fabric(own, s.node, s.nodes, s.origin);
  out.ports = s.nodes * s.node.nics;  // downward of the leaves
  const auto& tiers = layout.tiers;
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const std::int64_t switches = tiers[t].blocks * tiers[t].top;
    out.switches += switches;
    if (t + 1 < tiers.size())  // a cable to the tier above has two ends
      out.ports += 2 * switches * tiers[t + 1].choices * tiers[t + 1].cables;
  }
  return out;
}

ClusterPower power_at_work(const Scenario& s, Watts gpu) {
  const auto gpus = static_cast<double>(s.gpus);
  if (s.power_count == PowerCount::tdp) return {.gpus = s.node.gpu.tdp * gpus};
  return {gpu * gpus, rest_of_nodes(s), network_power(s)};
}

ClusterPower power_at_rest(const Scenario& s, Watts idle_gpu) {
  const auto gpus = static_cast<double>(s.gpus);
  if (s.power_count == PowerCount::tdp) return power_at_work(s, idle_gpu);
  return {idle_gpu * gpus, rest_of_nodes(s) * rest_when_idle, network_power(s)};
}

}  // namespace stepcast::sim
