// Attention when the ranks of a context group share each sequence (Llama 3, 2024): keys and values
// of the others come round a ring, are gathered, or all is exchanged for a part of the heads.
//
//   ring, 3 ranks   exchange   K,V of r-1 |  K,V of r-2 |
//                   compute    own block  | block r-1   | block r-2
//
// Causal attention is balanced: rank r holds chunks r and 2c-1-r of the sequence, so every block
// but its own is half of one, and all ranks do the same work.
#pragma once

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

void write_context_attention_forward(PieceWriter&);
void write_context_attention_backward(PieceWriter&);

}  // namespace stepcast::workloads
