#include "workloads/plan/transformer.hpp"

#include <algorithm>

namespace stepcast::workloads {
namespace {

std::int64_t query_width(const TransformerShape& s) { return s.heads * s.head_dim; }
std::int64_t kv_width(const TransformerShape& s) { return s.kv_heads * s.head_dim; }
std::int64_t norm_parameters(const TransformerShape& s) {
  return s.norm == Norm::layernorm ? 2 * s.hidden : s.hidden;  // LayerNorm has a bias
}

/// Weights that enter a matrix product in one layer: q, k, v, o and the two or three of the MLP.
std::int64_t layer_matmul_parameters(const TransformerShape& s) {
  const std::int64_t attention = s.hidden * (2 * query_width(s) + 2 * kv_width(s));
  const std::int64_t mlp_matrices = s.activation == Activation::swiglu ? 3 : 2;
  return attention + mlp_matrices * s.hidden * s.ffn_hidden;
}

std::int64_t layer_biases(const TransformerShape& s) {
  if (!s.biases) return 0;
  const std::int64_t up = s.activation == Activation::swiglu ? 2 * s.ffn_hidden : s.ffn_hidden;
  return query_width(s) + 2 * kv_width(s) + s.hidden + up + s.hidden;
}

}  // namespace

std::int64_t layer_parameters(const TransformerShape& s) {
  return layer_matmul_parameters(s) + layer_biases(s) + 2 * norm_parameters(s);
}

std::int64_t predicted_positions(const TransformerShape& s, std::int64_t sequence) {
  return masked(s) ? std::max<std::int64_t>(1, sequence * 5 / 32) : sequence;
}

std::int64_t embedding_parameters(const TransformerShape& s) {
  const std::int64_t segments = masked(s) ? 2 * s.hidden + norm_parameters(s) : 0;
  return s.vocab * s.hidden + (learned_positions(s) ? s.max_positions * s.hidden : 0) + segments;
}

std::int64_t head_parameters(const TransformerShape& s) {
  const std::int64_t own = norm_parameters(s) + (s.tied_embeddings ? 0 : s.vocab * s.hidden);
  if (!masked(s)) return own;
  const std::int64_t dense = s.hidden * s.hidden + s.hidden;  // transform, pooler
  return own + 2 * dense + s.vocab + 2 * s.hidden + 2;
}

std::int64_t parameters(const TransformerShape& s) {
  return s.layers * layer_parameters(s) + embedding_parameters(s) + head_parameters(s);
}

Flops model_flops(const TransformerShape& s, std::int64_t tokens, std::int64_t sequence) {
  const double predicted =
      static_cast<double>(predicted_positions(s, sequence)) / static_cast<double>(sequence);
  const std::int64_t head = (s.vocab + (masked(s) ? s.hidden : 0)) * s.hidden;
  const double matmul = static_cast<double>(s.layers * layer_matmul_parameters(s)) +
                        predicted * static_cast<double>(head);
  const auto attention = static_cast<double>(s.layers * query_width(s) * sequence);
  return Flops((6.0 * matmul + 12.0 * attention) * static_cast<double>(tokens));
}

}  // namespace stepcast::workloads
