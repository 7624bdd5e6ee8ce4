// The shared experts of a layer: a dense MLP that takes every token and that tensor ranks cut.
#pragma once

#include "workloads/pieces/expert_sizes.hpp"
#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

inline bool has_shared(const PieceWriter& w) { return w.in().shape.experts.shared_ffn > 0; }
/// Under the exchange: the first product and what follows it under the way to the experts, the
/// second under the way back (Megatron core shared_experts.py).
bool overlaps_shared(const PieceWriter&);

void shared_up_forward(PieceWriter&, const ExpertSizes&);
/// The second product; with a gate one with one output a token, its sigmoid, and the rows times it.
void shared_down_forward(PieceWriter&, const ExpertSizes&);
/// Both.
void shared_forward(PieceWriter&, const ExpertSizes&);

void shared_up_backward(PieceWriter&, const ExpertSizes&, const ParameterTensors& unit);
void shared_down_backward(PieceWriter&, const ExpertSizes&, const ParameterTensors& unit);

}  // namespace stepcast::workloads
