// One decoder layer of one micro-batch on one rank: forward, and backward with what recompute adds.
#pragma once

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

Piece layer_forward(const StepInputs&, KernelTable&, LayerKind kind = {});
/// Gradient marks are indexes into `unit` (layer_tensors). Recompute selective reruns the attention
/// core, full the whole layer with its collectives (Megatron reruns the last GEMM too, torch 2.1
/// does not).
Piece layer_backward(const StepInputs&, KernelTable&, const ParameterTensors& unit,
                     LayerKind kind = {});

}  // namespace stepcast::workloads
