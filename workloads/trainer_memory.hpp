// What stepcast's own trainer (validate/trainer_step.hpp) allocates on a rank of a stage. It takes
// all of its buffers once and keeps them, so nothing depends on the moment.
#pragma once

#include <cstdint>

#include "workloads/memory.hpp"
#include "workloads/piece.hpp"

namespace stepcast::workloads {

Memory trainer_memory(const StepInputs& in, std::int64_t stage);

}  // namespace stepcast::workloads
