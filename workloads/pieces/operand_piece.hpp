// Operands of a layer's products under a low-precision recipe: the kernels that quantize them, and
// when. Transformer Engine quantizes each once, in both directions; torchao where it is used, and
// again in backward.
#pragma once

#include <string>

#include "workloads/pieces/piece.hpp"
#include "workloads/plan/low_precision.hpp"

namespace stepcast::workloads {

/// Writes the kernels that quantize one operand tensor of `elements`; nothing without a recipe.
/// `shared`: tensor ranks hold a part each, and a scale of the whole follows from the largest
/// element on any of them.
void write_casts(PieceWriter&, const std::string& name, OperandRole, OperandCopies,
                 std::int64_t elements, bool shared = false);
/// Of what a norm has quantized, the layout of scales alone.
void write_swizzles(PieceWriter&, const std::string& name, std::int64_t elements);
/// Those that make the columns of an operand from its rows, where its products need them.
void write_transposes(PieceWriter&, const std::string& name, std::int64_t elements);

/// Backward quantizes inputs and weights of forward again (torchao float8_linear.py, read 2026-11:
/// it saves them in 16 bits).
bool quantizes_again(const Software&);
/// Norms write the quantized copy in place of their output: Transformer Engine's LayerNormLinear,
/// for delayed scaling and mxfp8 (layernorm_linear.py, read 2026-11); a scale that follows from
/// the output cannot be known there. Megatron's own activations do not (core/transformer/mlp.py
/// 00caa53a, read 2026-11).
bool norms_quantize(const StepInputs&);

/// What a norm before a layer's products writes.
std::int64_t norm_output_bytes(const PieceWriter&);

}  // namespace stepcast::workloads
