// What a user should know of the machine that a scenario describes: to what it was referred, which
// link caps another, which changed keys do less than they say. Knows no times.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// Empty for a machine of the catalogue as it is.
std::vector<std::string> cluster_warnings(const Scenario&);

}  // namespace stepcast::sim
