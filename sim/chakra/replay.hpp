// Chakra traces as a program of a cluster: compute takes as long as the trace says, collectives
// and messages as long as the network of the scenario makes them.
#pragma once

#include <string>
#include <vector>

#include "engine/system.hpp"
#include "sim/chakra/rank_lanes.hpp"
#include "sim/chakra/trace_folder.hpp"
#include "sim/run/session.hpp"

namespace stepcast::sim {

struct Replay {
  std::int64_t ranks = 0, simulated_ranks = 0;
  std::size_t files = 0, nodes = 0, groups = 0;
  Duration step{};      // from the end of a step to that of the next; once from rest with `once`
  Duration recorded{};  // that the trace says of itself; zero: nothing
  engine::RankAccount mean;  // over ranks; their sum is the step
  Duration slowest{};        // the most compute of a rank
  std::int64_t slowest_rank = 0;
  ProvenanceShares network{};  // of the collectives' time
  std::vector<std::string> warnings;
};

/// `once`: one step from rest, as ASTRA-sim runs a trace. Otherwise steps follow one another until
/// they repeat, as training does. Throws InputError where the trace's ranks do not agree or do not
/// fit on the cluster, engine::Stalled where they wait for each other for ever.
Replay replay(const EtTrace& trace, const Scenario& scenario, Session& session, bool once);

}  // namespace stepcast::sim
