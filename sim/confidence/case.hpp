// What kind of forecast an answer is: asked of every one, and kept with every residual.
#pragma once

#include <string>

#include "sim/run/memory_odds.hpp"
#include "sim/run/residuals.hpp"
#include "sim/run/step_report.hpp"

namespace stepcast::sim {

Case case_of(const StepReport& report);
Case case_of(const CollectiveReport& report);
/// Of a collective of that size; `unmeasured` is 0 or 1.
Case case_of_collective(const topology::Architecture& architecture, std::int64_t nodes, Bytes bytes,
                        Provenance provenance);

}  // namespace stepcast::sim
