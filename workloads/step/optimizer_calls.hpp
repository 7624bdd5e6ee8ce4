// The end of a step: gradient norm over all ranks, clipping, AdamW on the rank's shard
// (torch/optim, foreach and fused).
#pragma once

#include "workloads/pieces/piece.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/step/calls.hpp"

namespace stepcast::workloads {

/// How much of the stage's parameters a rank's optimizer updates.
std::int64_t optimizer_elements(const StepInputs&, const StageParameters&);

void write_optimizer(const StepInputs&, KernelTable&, Calls&, const StageParameters&);

}  // namespace stepcast::workloads
