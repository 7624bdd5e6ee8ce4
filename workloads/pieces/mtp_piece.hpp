// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437 section 2.2) as Megatron-LM trains it
// (core/transformer/multi_token_prediction.py, recalled 2026): after the final norm, on the last
// stage, the hidden tensor and the embedding of the next token, each under a norm of its own, are
// joined and brought down to h by one product; then a layer like the model's last, a norm, and the
// model's head and loss once more.
#pragma once

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

/// From the final norm's output to the input of the head.
Piece mtp_forward(const StepInputs&, KernelTable&);
/// From the gradient of the head's input to that of the final norm's output, summed with the
/// model's own.
Piece mtp_backward(const StepInputs&, KernelTable&, const ParameterTensors& unit);

}  // namespace stepcast::workloads
