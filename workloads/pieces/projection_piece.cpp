#include "workloads/pieces/projection_piece.hpp"

#include "workloads/pieces/attention_piece.hpp"
#include "workloads/pieces/latent_piece.hpp"
#include "workloads/pieces/linear_piece.hpp"
#include "workloads/pieces/norm_piece.hpp"
#include "workloads/pieces/operand_piece.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

Linear projection(const PieceWriter& w, const std::string& tensor, std::int64_t out) {
  const TransformerShape& s = w.in().shape;
  return {.name = "layer." + tensor,
          .tensor = tensor,
          .in = s.hidden,
          .out = out,
          .bias = s.biases || s.qkv_biases,
          .low = w.low(),
          .norm_casts = w.low() && norms_quantize(w.in())};
}

std::int64_t joined_width(const PieceWriter& w) {
  const Sizes& s = w.sizes();
  return s.query + s.gate + s.kv + s.kv_values;
}

Linears query_key_value(const PieceWriter& w) {
  const Sizes& s = w.sizes();
  if (w.packed()) return {projection(w, "attention.qkv", joined_width(w))};
  Linears out{projection(w, "attention.q", s.query + s.gate), projection(w, "attention.k", s.kv)};
  if (s.kv_values > 0) out.push_back(projection(w, "attention.v", s.kv_values));
  return out;
}

/// Every head of every token by itself, or all heads of a token together.
NormRows rows_of_heads(const PieceWriter& w, std::int64_t heads) {
  const std::int64_t width = w.in().shape.head_dim;
  if (w.in().shape.qk_norm_whole) return {w.sizes().tokens, heads * width};
  return {w.sizes().tokens * heads, width};
}

/// Tensor ranks that cut the heads of a norm over all add up the squares of each token.
void sum_squares(PieceWriter& w, const std::string& name) {
  if (w.in().shape.qk_norm_whole && w.split())
    w.collective(name + ".squares", CollectiveKind::all_reduce, Dtype::fp32, 4 * w.sizes().tokens);
}

struct NormedHeads {
  const char* tensor;
  std::int64_t heads;
};
std::vector<NormedHeads> normed_heads(const PieceWriter& w) {
  if (!w.in().shape.qk_norm && !w.in().shape.qk_norm_whole) return {};
  return {{"attention.q_norm", w.sizes().heads}, {"attention.k_norm", w.sizes().kv_heads}};
}

}  // namespace

void write_projections_forward(PieceWriter& w) {
  if (latent(w.in().shape)) return write_latent_projections_forward(w);
  write_column_forward(w, "layer.attention.qkv", query_key_value(w));
  for (const NormedHeads& n : normed_heads(w)) {
    const std::string name = std::string("layer.") + n.tensor;
    sum_squares(w, name);
    write_inner_norm_forward(w, name, rows_of_heads(w, n.heads));
  }
  write_rope(w, ".forward");
}

void write_projections_backward(PieceWriter& w, const ParameterTensors& unit) {
  if (latent(w.in().shape)) return write_latent_projections_backward(w, unit);
  write_rope(w, ".backward");
  for (const NormedHeads& n : normed_heads(w)) {
    const std::string name = std::string("layer.") + n.tensor;
    sum_squares(w, name + ".backward");
    write_inner_norm_backward(w, name, unit, n.tensor, rows_of_heads(w, n.heads));
  }
  write_joined_gradients(w, "layer.attention.qkv.concatenate", joined_width(w));
  write_column_backward(w, "layer.attention.qkv", unit, query_key_value(w));
}

void write_joined_gradients(PieceWriter& w, const std::string& name, std::int64_t width) {
  if (w.packed() && w.eager())
    w.pass(name, KernelFamily::copy, 2 * w.sizes().element * w.sizes().tokens * width);
}

}  // namespace stepcast::workloads
