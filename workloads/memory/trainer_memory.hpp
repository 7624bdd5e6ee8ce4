// What stepcast's own trainer (validate/trainer/model/step.hpp) allocates on a rank of a stage. It
// takes all of its buffers once and keeps them, so nothing depends on the moment.
#pragma once

#include <cstdint>

#include "workloads/memory/memory.hpp"
#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

/// Whether the trainer runs this plan; what-if plans beyond it are counted as other software's.
inline bool trainer_has(const ParallelPlan& plan) {
  return plan.context == 1 && plan.reduce == ReduceWhen::last;
}

Memory trainer_memory(const StepInputs& in, std::int64_t stage);

}  // namespace stepcast::workloads
