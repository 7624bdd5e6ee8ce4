#include "workloads/plan/model_size.hpp"

#include <algorithm>

#include "workloads/plan/lora.hpp"

namespace stepcast::workloads {
namespace {

/// LayerNorm has a bias.
std::int64_t norm_elements(const TransformerShape& s, std::int64_t width) {
  return s.norm == Norm::layernorm ? 2 * width : width;
}

/// q, k, v, o; latent: down to the ranks (the keys' rotary part beside), up from them, o.
std::int64_t attention_products(const TransformerShape& s) {
  const std::int64_t scores = s.heads * score_width(s), values = s.heads * value_width(s);
  if (!latent(s)) return s.hidden * (scores + values + 2 * s.kv_heads * s.head_dim);
  const LatentShape& l = s.latent;
  const std::int64_t q = l.q_rank > 0 ? l.q_rank * (s.hidden + scores) : s.hidden * scores;
  return q + s.hidden * (l.kv_rank + l.rope) + l.kv_rank * (s.heads * l.nope + values) +
         values * s.hidden;
}

/// Biases of q, k and v, of o, and sinks.
std::int64_t attention_rest(const TransformerShape& s) {
  const std::int64_t qkv = (s.heads + 2 * s.kv_heads) * s.head_dim;
  return (s.biases || s.qkv_biases ? qkv : 0) + (s.biases ? s.hidden : 0) + (s.sinks ? s.heads : 0);
}

std::int64_t norms_of_layer(const TransformerShape& s) {
  const std::int64_t heads = s.qk_norm ? 2 * norm_elements(s, s.head_dim) : 0;
  const std::int64_t ranks = s.latent.q_rank + s.latent.kv_rank;
  return 2 * norm_elements(s, s.hidden) + heads + (latent(s) ? norm_elements(s, ranks) : 0);
}

std::int64_t mlp_matrices(const TransformerShape& s) { return gated(s) ? 3 : 2; }
std::int64_t dense_products(const TransformerShape& s) {
  return mlp_matrices(s) * s.hidden * s.ffn_hidden;
}
std::int64_t dense_mlp(const TransformerShape& s) {
  return dense_products(s) + (s.biases ? (mlp_matrices(s) - 1) * s.ffn_hidden + s.hidden : 0);
}

std::int64_t expert_products(const TransformerShape& s) {
  return mlp_matrices(s) * s.hidden * s.experts.ffn;
}
std::int64_t shared_products(const TransformerShape& s) {
  return mlp_matrices(s) * s.hidden * s.experts.shared_ffn;
}

struct LayerParameters {
  std::int64_t attention, norms, dense = 0, router = 0, experts = 0, shared = 0;
  std::int64_t total() const { return attention + norms + dense + router + experts + shared; }
};

LayerParameters parameters_of_layer(const TransformerShape& s, bool experts, Counted counted) {
  LayerParameters out{attention_products(s) + attention_rest(s), norms_of_layer(s)};
  const ExpertShape& e = s.experts;
  if (!experts) return out.dense = dense_mlp(s), out;
  out.router = e.count * (s.hidden + (e.biases ? 1 : 0) + (e.score_bias ? 1 : 0));
  out.experts = (counted == Counted::all ? e.count : e.per_token) * expert_parameters(s);
  out.shared = shared_products(s) + (e.shared_gate ? s.hidden : 0);
  return out;
}

std::int64_t mtp_module(const TransformerShape& s, Counted counted) {
  return parameters_of_layer(s, has_experts(s, s.layers - 1), counted).total() +
         2 * s.hidden * s.hidden + 3 * norm_elements(s, s.hidden);
}

std::int64_t products_of_layer(const TransformerShape& s, bool experts) {
  if (!experts) return attention_products(s) + dense_products(s);
  return attention_products(s) + s.hidden * s.experts.count +
         s.experts.per_token * expert_products(s) + shared_products(s);
}

/// Without the head.
std::int64_t products_of_layers(const TransformerShape& s) {
  const std::int64_t experts = expert_layers(s);
  const std::int64_t mtp =
      products_of_layer(s, has_experts(s, s.layers - 1)) + 2 * s.hidden * s.hidden;
  return experts * products_of_layer(s, true) + (s.layers - experts) * products_of_layer(s, false) +
         s.mtp_layers * mtp;
}

/// Of a token, forward and backward: two for each weight and pass, without a frozen weight's own.
double products_flops(const TransformerShape& s, double weights) {
  if (!adapted(s)) return 6.0 * weights;
  return 4.0 * weights + 6.0 * static_cast<double>(adapter_parameters(s));
}

/// Of the model's layers and those of MTP.
template <class Keys>
auto sum_over_layers(const TransformerShape& s, Keys keys) {
  auto sum = keys(false) * 0;
  for (std::int64_t l = 0; l < s.layers + s.mtp_layers; ++l)
    sum += keys(has_window(s, std::min(l, s.layers - 1)));
  return sum;
}

}  // namespace

bool has_experts(const TransformerShape& s, std::int64_t layer) {
  const ExpertShape& e = s.experts;
  return e.count > 0 && layer >= e.dense_layers &&
         (layer - e.dense_layers) % e.every == e.every - 1;
}

bool has_window(const TransformerShape& s, std::int64_t layer) {
  return s.window > 0 && layer % s.window_every == 0;
}

std::int64_t expert_layers(const TransformerShape& s) {
  return s.experts.count == 0 ? 0 : (s.layers - s.experts.dense_layers) / s.experts.every;
}

std::int64_t score_width(const TransformerShape& s) {
  return latent(s) ? s.latent.nope + s.latent.rope : s.head_dim;
}
std::int64_t value_width(const TransformerShape& s) {
  return latent(s) ? s.latent.value : s.head_dim;
}

const char* attention_beyond_llama(const TransformerShape& s) {
  if (latent(s)) return "latent attention (MLA)";
  if (s.qk_norm) return "norms of queries and keys";
  if (s.qkv_biases && !s.biases) return "biases of q, k and v alone";
  if (s.window > 0) return "windows of attention";
  if (s.sinks) return "sinks of attention";
  if (s.mtp_layers > 0) return "modules for further tokens (MTP)";
  return nullptr;
}

std::int64_t expert_parameters(const TransformerShape& s) {
  return expert_products(s) +
         (s.experts.biases ? (mlp_matrices(s) - 1) * s.experts.ffn + s.hidden : 0);
}

std::int64_t layer_parameters(const TransformerShape& s, std::int64_t layer) {
  return parameters_of_layer(s, has_experts(s, layer), Counted::all).total();
}

std::int64_t mtp_parameters(const TransformerShape& s) {
  return s.mtp_layers > 0 ? s.mtp_layers * mtp_module(s, Counted::all) : 0;
}

ModelParameters parameters_by_part(const TransformerShape& s, Counted counted) {
  const LayerParameters dense = parameters_of_layer(s, false, counted);
  const LayerParameters expert = parameters_of_layer(s, true, counted);
  const std::int64_t experts = expert_layers(s);
  const std::int64_t final_norm = masked(s) ? 0 : norm_elements(s, s.hidden);
  return {.embedding = embedding_parameters(s),
          .attention = s.layers * dense.attention,
          .norms = s.layers * dense.norms + final_norm,
          .dense_mlp = (s.layers - experts) * dense.dense,
          .router = experts * expert.router,
          .experts = experts * expert.experts,
          .shared_experts = experts * expert.shared,
          .mtp = s.mtp_layers > 0 ? s.mtp_layers * mtp_module(s, counted) : 0,
          .head = head_parameters(s) - final_norm};
}

std::int64_t products_per_token(const TransformerShape& s) {
  return products_of_layers(s) + (1 + s.mtp_layers) * s.vocab * s.hidden;
}

Flops model_flops(const TransformerShape& s, std::int64_t tokens, std::int64_t sequence) {
  const double predicted =
      static_cast<double>(predicted_positions(s, sequence)) / static_cast<double>(sequence);
  const std::int64_t head = (1 + s.mtp_layers) * (s.vocab + (masked(s) ? s.hidden : 0)) * s.hidden;
  const double matmul =
      static_cast<double>(products_of_layers(s)) + predicted * static_cast<double>(head);
  const std::int64_t keys = sum_over_layers(
      s, [&](bool window) { return window ? std::min(s.window, sequence) : sequence; });
  const auto attention = static_cast<double>(s.heads * (score_width(s) + value_width(s)) * keys);
  return Flops((products_flops(s, matmul) + 6.0 * attention) * static_cast<double>(tokens));
}

Flops causal_model_flops(const TransformerShape& s, std::int64_t tokens, std::int64_t sequence) {
  const auto all = static_cast<double>(sequence);
  const double keys = sum_over_layers(s, [&](bool window) {
    if (masked(s)) return all;
    const double seen = window ? static_cast<double>(std::min(s.window, sequence)) : all;
    return seen - seen * seen / (2 * all);
  });
  const double attention = static_cast<double>(s.heads * (score_width(s) + value_width(s))) * keys;
  const auto products = static_cast<double>(products_per_token(s));
  return Flops((products_flops(s, products) + 6.0 * attention) * static_cast<double>(tokens));
}

}  // namespace stepcast::workloads
