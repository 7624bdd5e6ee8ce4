// Choices of experts and low precision that a step could be run without, each turned alone and
// simulated anew: what a slope cannot say of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/run/session.hpp"

namespace stepcast::sim {

struct Lever {
  std::string name;              // "no host sync in layers of experts"
  std::string key;               // that says so: "software.host_sync = none"
  std::optional<Duration> step;  // with it
  std::string refused;           // why there is none
};

/// Those that the scenario leaves to turn, in the table's order; none for dense 16-bit steps.
std::vector<Lever> levers(const Scenario& scenario, Session& session);

}  // namespace stepcast::sim
