// What NCCL's own choice of protocols costs a step.
#pragma once

#include "sim/run/session.hpp"

namespace stepcast::sim {

/// Warns where the same step with one protocol pinned is shorter by a tenth or more, with both
/// times and the variable: NCCL ranks by an estimate that does not predict (choice.hpp), so that a
/// faster machine may be a slower one where the choice changes. The step is simulated once more
/// where the collectives alone could save as much.
void warn_of_protocol(StepReport&, Session&);

}  // namespace stepcast::sim
