// The attention core between the projections: RoPE; attention forward and backward of each kernel
// (FlashAttention-like, or unfused with its score matrix). arXiv 2307.08691.
#pragma once

#include <string>

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

/// Rotation of q and k; `suffix` is ".forward" or ".backward", which moves the same bytes.
void write_rope(PieceWriter&, const std::string& suffix);

/// Attention of `batch` x `heads` matrices of scores, `rows` queries by `sequence` keys each.
struct AttentionPart {
  std::int64_t batch = 1, heads = 1, kv_heads = 1;
  std::int64_t rows = 1, sequence = 1;
  bool causal = true;
  std::int64_t window = 0;  // keys that a query looks back; 0: all
};

AttentionPart whole_attention(const PieceWriter&);
bool keeps_scores(const PieceWriter&);
void write_attention_part_forward(PieceWriter&, const AttentionPart&);
void write_attention_part_backward(PieceWriter&, const AttentionPart&);

/// Bytes of q, of k and v as the kernel takes them (repeated for every q head in eager code), and
/// of what comes out.
std::int64_t query_bytes(const PieceWriter&);
std::int64_t key_bytes(const PieceWriter&);
std::int64_t value_bytes(const PieceWriter&);
std::int64_t output_bytes(const PieceWriter&);

void write_attention_core_forward(PieceWriter&);
void write_attention_core_backward(PieceWriter&);

}  // namespace stepcast::workloads
