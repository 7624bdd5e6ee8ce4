// A trace's ranks as an engine::System on a cluster.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/system.hpp"
#include "sim/chakra/rank_lanes.hpp"
#include "sim/chakra/trace_folder.hpp"
#include "sim/run/machine.hpp"

namespace stepcast::sim {

struct ReplaySystem {
  engine::System system;
  std::vector<double> network_seconds;  // by Provenance
};

/// `lanes`, by file. What is given outlives nothing. Throws InputError at the trace's folder.
ReplaySystem replay_system(const EtTrace& trace, const std::vector<RankLanes>& lanes,
                           const Network& network);

}  // namespace stepcast::sim
