// One decoder layer of one micro-batch on one rank: forward, and backward with what recompute adds.
#pragma once

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

Piece layer_forward(const StepInputs&, KernelTable&, LayerKind kind = {});
/// Gradient marks are indexes into `unit` (layer_tensors). Recompute selective reruns the attention
/// core, full the whole layer with its collectives (Megatron reruns the last GEMM too, torch 2.1
/// does not). By operators all but what saved_by_operators() tells.
Piece layer_backward(const StepInputs&, KernelTable&, const ParameterTensors& unit,
                     LayerKind kind = {});

/// Bytes of what torch's checkpoint by operators saves of a layer beside its input, in the order of
/// forward (torchtitan distributed/activation_checkpoint.py at b5bcd76c, read 2026-11): of its
/// products every second from the first, all of a recipe's; attention's output and its statistics;
/// what reduce-scatters and all-to-alls leave. Products of experts never. Compiled code drops the
/// layer's last product, which backward does not read.
std::vector<std::int64_t> saved_by_operators(const StepInputs&, LayerKind kind = {});

}  // namespace stepcast::workloads
