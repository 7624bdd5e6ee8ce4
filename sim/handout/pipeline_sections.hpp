// The pipeline and the collectives of a step on a page.
#pragma once

#include <optional>

#include "sim/handout/step_handout.hpp"

namespace stepcast::sim {

/// One rank of each stage over the step.
ToldSection pipeline_section(const StepHandout& handout);
/// Calls, bytes and time of each kind on one rank of each stage; none where there are none.
std::optional<ToldSection> collectives_section(const StepHandout& handout);

}  // namespace stepcast::sim
