// The step as it should have been: simulated, and cut like a measured one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/run/session.hpp"
#include "validate/diagnose/parts.hpp"

namespace stepcast::validate {

struct ExpectedStep {
  sim::StepReport report;
  std::vector<RankParts> parts;            // of ranks that differ; empty: not asked for
  std::map<std::int64_t, std::size_t> as;  // by rank: which of `parts` it does
  std::set<ExchangeKind> between_nodes;    // some group of this kind spans nodes

  /// The part that this rank plays; of an unknown rank, the first one's.
  const RankParts& of(std::int64_t rank) const;
};

/// Memory refuses nothing: the run was possible. Without `parts` the step alone.
ExpectedStep expected_step(sim::Scenario scenario, sim::Session& session, bool parts);

/// Seconds of all transfers of each kind in a step under this variable of NCCL; none where this
/// NCCL or the machine does not know the value.
std::optional<std::map<ExchangeKind, ExchangeTally>> exchanges_under(sim::Scenario scenario,
                                                                     sim::Session& session,
                                                                     const std::string& name,
                                                                     const std::string& value);

}  // namespace stepcast::validate
