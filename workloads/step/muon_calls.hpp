// Muon's update of the matrices of layers (arXiv 2502.16982): momentum, exchange of whole matrices
// where they are cut, five Newton-Schulz iterations, the parameter. What else there is is AdamW's.
#pragma once

#include <cstdint>

#include "workloads/pieces/piece.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/step/calls.hpp"

namespace stepcast::workloads {

/// `elements`: of the matrices of the stage, those that this rank keeps.
void write_muon(const StepInputs&, KernelTable&, Calls&, const StageParameters&,
                std::int64_t elements);

}  // namespace stepcast::workloads
