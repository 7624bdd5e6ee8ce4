// Memory of a step on a page.
#pragma once

#include "sim/handout/step_handout.hpp"

namespace stepcast::sim {

/// Of each stage its parts against what the GPU has; over the step where that is known.
ToldSection memory_section(const StepHandout& handout);

}  // namespace stepcast::sim
