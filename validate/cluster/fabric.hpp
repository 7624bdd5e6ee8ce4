// The fabrics that a scenario's cluster is built with, by word: its own, or two leaves under one
// spine, or one switch with a slow cable. Each changes the scenario, of which both the box and the
// simulated cluster are made.
#pragma once

#include <string>
#include <vector>

#include "sim/run/machine.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::validate {

struct BoxFabric {
  std::string word;               // "own", "nonblocking", "2:1", "slow-nic"
  std::int64_t down_over_up = 0;  // of the leaves; 0: as the scenario has it, or one switch
  bool one_switch = false;
  double slow_nic = 1.0;  // so much slower is the cable of the last node
};

/// "nonblocking,2:1"; empty: the scenario's own. Throws UsageError.
std::vector<BoxFabric> fabrics_of(const std::string& words);

/// The cluster of so many jobs of a scenario, on that fabric: on_fabric() with as many nodes.
sim::Scenario box_for(sim::Scenario job, std::int64_t jobs, const BoxFabric& fabric);

/// The scenario on that fabric. Throws InputError where its nodes do not make two such leaves.
sim::Scenario on_fabric(sim::Scenario scenario, const BoxFabric& fabric);

/// The cluster of a scenario that is on the fabric.
topology::Cluster cluster_of(const sim::Scenario& scenario, const BoxFabric& fabric);

}  // namespace stepcast::validate
