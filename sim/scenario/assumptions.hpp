// What nobody has measured or published, and a step of this scenario rests on: a sentence each, for
// its report. docs/modern.md names the same.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// In the table's order; empty for what was measured well enough, and for collectives alone.
std::vector<std::string> assumptions(const Scenario&);

}  // namespace stepcast::sim
