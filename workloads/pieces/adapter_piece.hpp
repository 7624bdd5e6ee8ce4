// Low-rank adapters beside the products of a layer (PEFT's lora/layer.py, Megatron-Bridge's
// ParallelLinearAdapter; both recalled, 2026): y + s B A x in kernels of their own.
#pragma once

#include "workloads/pieces/linear_piece.hpp"
#include "workloads/plan/lora.hpp"

namespace stepcast::workloads {

/// Beside a product, by its tensor; most have none. Those of "experts.*" are on their rows.
std::vector<Adapter> adapters_of(const PieceWriter&, const Linear&);

/// A frozen weight of fewer bits, made wide for the product that follows: forward's and, again,
/// that of the input gradient (bitsandbytes autograd/_functions.py MatMul4Bit; recalled, 2026).
void write_dequantize(PieceWriter&, const Linear&);

void write_adapters_forward(PieceWriter&, const Linear&);
/// Gradients of both parts and of the input, which is yet to be added to the product's.
void write_adapters_backward(PieceWriter&, const ParameterTensors& unit, const Linear&);

}  // namespace stepcast::workloads
