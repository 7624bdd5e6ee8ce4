// The shape of a transformer of one stack: Llama-2 style (RMSNorm, SwiGLU, RoPE, GQA), GPT style
// (LayerNorm, GELU, biases, learned positions, tied embeddings) or BERT (the same, trained on
// masked positions). Knows no parallelism.
#pragma once

#include <cstdint>
#include <string>

#include "engine/units.hpp"

namespace stepcast::workloads {

enum class Norm : std::uint8_t { rmsnorm, layernorm };
enum class Activation : std::uint8_t { swiglu, gelu };
/// next_token: causal attention, every position is predicted. masked: BERT, attention in both
/// directions, 5 of 32 positions are predicted, and whether two segments follow each other.
enum class Objective : std::uint8_t { next_token, masked };

struct TransformerShape {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  // hidden / heads unless the model says otherwise
  std::int64_t ffn_hidden = 0;
  std::int64_t vocab = 0;
  Norm norm = Norm::rmsnorm;
  Activation activation = Activation::swiglu;
  bool biases = false;
  bool rope = true;  // false: learned positions, `max_positions` of them, unless ALiBi
  bool alibi = false;
  std::int64_t max_positions = 0;
  bool tied_embeddings = false;
  bool dropout = false;  // of embedding, attention probabilities and both residual branches
  Objective objective = Objective::next_token;

  friend bool operator==(const TransformerShape&, const TransformerShape&) = default;
};

inline bool masked(const TransformerShape& s) { return s.objective == Objective::masked; }
inline bool learned_positions(const TransformerShape& s) { return !s.rope && !s.alibi; }

/// Positions of a sequence that the vocabulary's logits are made for: all, or BERT's
/// max_predictions_per_seq (20 of 128, 80 of 512).
std::int64_t predicted_positions(const TransformerShape&, std::int64_t sequence);

/// Parameters of one layer, of the embedding, of the final norm and head, and in total.
std::int64_t layer_parameters(const TransformerShape&);
std::int64_t embedding_parameters(const TransformerShape&);
/// Final norm and head (nothing if tied). BERT: a transform with its norm, the bias of the logits,
/// the pooler and its classes; no final norm.
std::int64_t head_parameters(const TransformerShape&);
std::int64_t parameters(const TransformerShape&);

/// FLOPs of one optimizer step over `tokens` tokens, for MFU: 6 N_matmul tokens + 12 L h s tokens
/// (full attention, not halved for the causal mask; recompute not counted), the convention of the
/// study and of PaLM (arXiv 2204.02311, appendix B).
Flops model_flops(const TransformerShape&, std::int64_t tokens, std::int64_t sequence);

}  // namespace stepcast::workloads
