// The two ends of the model: embedding before the first layer; final norm, head and loss after the
// last. Vocabulary parallel when the tensor degree is above 1 (Megatron, cross_entropy.py).
#pragma once

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

Piece embedding_forward(const StepInputs&, KernelTable&);
Piece embedding_backward(const StepInputs&, KernelTable&, const ParameterTensors& unit);

Piece head_forward(const StepInputs&, KernelTable&);
Piece head_backward(const StepInputs&, KernelTable&, const ParameterTensors& unit);

}  // namespace stepcast::workloads
