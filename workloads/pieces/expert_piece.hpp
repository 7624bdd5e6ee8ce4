// The expert half of a decoder layer between its norm and its residual: router, exchange, the
// experts' products, and the shared experts beside them (Megatron core moe/, torchtitan
// models/common/moe.py).
#pragma once

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

void write_experts_forward(PieceWriter&);
/// With what recompute_modules run again. Gradient marks are indexes into `unit`.
void write_experts_backward(PieceWriter&, const ParameterTensors& unit);

}  // namespace stepcast::workloads
