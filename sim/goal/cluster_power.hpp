// What a cluster draws beside its GPUs: the rest of the nodes, switches and their cables.
#pragma once

#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// Of the whole cluster, without the building.
struct ClusterPower {
  Watts gpus{}, nodes{}, network{};
  Watts total() const { return gpus + nodes + network; }
};

struct NetworkParts {
  std::int64_t switches = 0;
  std::int64_t ports = 0;  // of switches, with a cable in them
};

/// The smallest fabric that holds the nodes; none for one node.
NetworkParts network_parts(const Scenario&);

/// While a step runs, each GPU drawing `gpu` on average. The rest of a node draws what is left of
/// 82 % of its rated power (8.4 of the 10.2 kW of a DGX H100, the most seen in training, arXiv
/// 2412.08602, 2024) when its GPUs draw their TDP; of a node without a rating half of that TDP, as
/// a DGX H100's does. Switches draw switch_power, each of their ports in use transceiver_power.
/// PowerCount::tdp: the GPUs' TDP alone.
ClusterPower power_at_work(const Scenario&, Watts gpu);

/// While it waits for repairs: GPUs idle with a context loaded; the rest of a node two thirds of
/// what it draws at work (BLOOM's nodes of 8 A100 drew 1.9 kW between steps, idle GPUs and network
/// included: 256,646 kWh in 135,374 node-hours, arXiv 2211.02001, against the 2.15 kW here at
/// work).
ClusterPower power_at_rest(const Scenario&, Watts idle_gpu);

}  // namespace stepcast::sim
