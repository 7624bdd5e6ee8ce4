// How large a model is: which layers have what, parameters by part, FLOPs of a token. Of models
// whose layers differ too (experts, windows); knows no parallelism.
#pragma once

#include <cstdint>

#include "engine/units.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

/// What a layer of the model has, counted from 0. Modules of multi-token prediction (MTP) hold one
/// more layer each, like the last (Megatron-LM multi_token_prediction.py, read 2026).
bool has_experts(const TransformerShape&, std::int64_t layer);
bool has_window(const TransformerShape&, std::int64_t layer);
/// Layers whose MLP is experts, without those of MTP.
std::int64_t expert_layers(const TransformerShape&);

/// Whether MLPs, experts and shared experts have a gate: three matrices, or two.
inline bool gated(const TransformerShape& s) { return s.activation == Activation::swiglu; }

inline bool latent(const TransformerShape& s) { return s.latent.kv_rank > 0; }
/// Of a head: q and k, and v.
std::int64_t score_width(const TransformerShape&);
std::int64_t value_width(const TransformerShape&);

/// What a model has that Llama, GPT and BERT have not, for those who know no other: in attention or
/// behind the head, or at all; null: nothing.
const char* attention_beyond_llama(const TransformerShape&);
inline const char* beyond_llama(const TransformerShape& s) {
  return s.experts.count > 0 ? "experts" : attention_beyond_llama(s);
}

/// Of the rows that experts take.
std::int64_t expert_width(const TransformerShape&);
/// Parameters of one expert, with its biases.
std::int64_t expert_parameters(const TransformerShape&);
/// Of the layer with that number; of an MTP module: its layer, three norms and the product of both
/// its inputs (embedding and head are the model's).
std::int64_t layer_parameters(const TransformerShape&, std::int64_t layer);
std::int64_t mtp_parameters(const TransformerShape&);

/// Of all experts, or of those that a token chooses.
enum class Counted : std::uint8_t { all, active };

struct ModelParameters {
  std::int64_t embedding = 0;
  std::int64_t attention = 0;  // products, biases, sinks; of the other mixers too
  std::int64_t norms = 0;      // of layers, of heads and low ranks within them, and the final one
  std::int64_t dense_mlp = 0;
  std::int64_t router = 0;
  std::int64_t experts = 0;
  std::int64_t shared_experts = 0;
  std::int64_t mtp = 0;   // all of the modules
  std::int64_t head = 0;  // nothing where it is the embedding's weight
  std::int64_t total() const {
    return embedding + attention + norms + dense_mlp + router + experts + shared_experts + mtp +
           head;
  }
};

ModelParameters parameters_by_part(const TransformerShape&, Counted);

/// Weights of the products that a token passes in forward: attention, MLP or chosen and shared
/// experts, router, head, and MTP with a head of its own.
std::int64_t products_per_token(const TransformerShape&);

/// FLOPs of one optimizer step over `tokens` tokens as Megatron-Bridge counts them: three times the
/// forward's, products and causal attention, 2 H (d_qk + d_v) per token and key, of s / 2 keys or,
/// with a window of w, w - w^2 / 2s (flop_utils.py at 067f987, read 2026). model_flops() takes all
/// s keys.
Flops causal_model_flops(const TransformerShape&, std::int64_t tokens, std::int64_t sequence);

}  // namespace stepcast::workloads
