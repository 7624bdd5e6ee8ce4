// The attention core between the projections: RoPE; attention forward and backward of each kernel
// (FlashAttention-like, or unfused with its score matrix). FRAMEWORKS 5.2, 5.3.
#pragma once

#include <string>

#include "workloads/piece.hpp"

namespace stepcast::workloads {

/// Rotation of q and k; `suffix` is ".forward" or ".backward", which moves the same bytes.
void write_rope(PieceWriter&, const std::string& suffix);

void write_attention_core_forward(PieceWriter&);
void write_attention_core_backward(PieceWriter&);

}  // namespace stepcast::workloads
