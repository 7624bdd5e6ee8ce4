#include "workloads/plan/transformer.hpp"

#include <algorithm>

#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

std::int64_t norm_parameters(const TransformerShape& s) {
  return s.norm == Norm::layernorm ? 2 * s.hidden : s.hidden;  // LayerNorm has a bias
}

}  // namespace

std::int64_t layer_parameters(const TransformerShape& s) {
  TransformerShape dense = s;
  dense.experts = {};
  dense.pattern = {};
  return layer_parameters(dense, 0);
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
  return parameters_by_part(s, Counted::all).total();
}

}  // namespace stepcast::workloads
