// The shape of a decoder-only transformer: Llama-2 style (RMSNorm, SwiGLU, RoPE, GQA) or GPT style
// (LayerNorm, GELU, biases, learned positions, tied embeddings). Dropout is 0. Knows no
// parallelism.
#pragma once

#include <cstdint>
#include <string>

#include "engine/units.hpp"

namespace stepcast::workloads {

enum class Norm : std::uint8_t { rmsnorm, layernorm };
enum class Activation : std::uint8_t { swiglu, gelu };

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
  bool rope = true;  // false: learned positions, `max_positions` of them
  std::int64_t max_positions = 0;
  bool tied_embeddings = false;

  friend bool operator==(const TransformerShape&, const TransformerShape&) = default;
};

/// Parameters of one decoder layer, of the embedding, of the final norm and head, and in total.
std::int64_t layer_parameters(const TransformerShape&);
std::int64_t embedding_parameters(const TransformerShape&);
std::int64_t head_parameters(const TransformerShape&);  // final norm + head (0 head if tied)
std::int64_t parameters(const TransformerShape&);

/// FLOPs of one optimizer step over `tokens` tokens, for MFU: 6 N_matmul tokens + 12 L h s tokens
/// (full attention, not halved for the causal mask; recompute not counted), the convention of the
/// study and of PaLM (arXiv 2204.02311, appendix B).
Flops model_flops(const TransformerShape&, std::int64_t tokens, std::int64_t sequence);

}  // namespace stepcast::workloads
