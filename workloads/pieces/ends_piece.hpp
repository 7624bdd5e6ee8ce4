// The two ends of the model: embedding before the first layer; final norm, head and loss after the
// last. Vocabulary parallel when the tensor degree is above 1 (Megatron, cross_entropy.py).
#pragma once

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

Piece embedding_forward(const StepInputs&, KernelTable&);
Piece embedding_backward(const StepInputs&, KernelTable&, const ParameterTensors& unit);

Piece head_forward(const StepInputs&, KernelTable&);
Piece head_backward(const StepInputs&, KernelTable&, const ParameterTensors& unit);

/// How head and loss go over a micro-batch of the rank: parts, and tokens of each (the last may be
/// smaller; it is taken as large). Liger's are the next power of two of T / ceil(V / h).
struct LossParts {
  std::int64_t count = 1, tokens = 0;
};
LossParts loss_parts(const StepInputs&);

}  // namespace stepcast::workloads
