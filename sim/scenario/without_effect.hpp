// Keys that a user changed and that change nothing in this scenario, and why: a report names them,
// so that nothing written is ignored in silence.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// "plan.schedule has no effect here: there are no pipeline stages", for every key of
/// scenario.changed that does nothing beside the others.
std::vector<std::string> without_effect(const Scenario& scenario);

}  // namespace stepcast::sim
