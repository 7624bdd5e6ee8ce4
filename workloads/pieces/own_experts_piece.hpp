// The expert half of a layer as our own trainer does it (validate/trainer/model/experts.hpp): one
// thing after the other, each product of all experts at once, weights with the rows.
#pragma once

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

/// All that backward reads.
void write_own_experts_inner(PieceWriter&);
/// The rest of forward.
void write_own_experts_outer(PieceWriter&);
/// Gradient marks are indexes into `unit`.
void write_own_experts_backward(PieceWriter&, const ParameterTensors& unit);

}  // namespace stepcast::workloads
