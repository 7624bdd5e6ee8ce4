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

Linears query_key_value(const PieceWriter& w) {
  const Sizes& s = w.sizes();
  if (w.packed()) return {projection(w, "attention.qkv", s.query + 2 * s.kv)};
  return {projection(w, "attention.q", s.query), projection(w, "attention.k", s.kv),
          projection(w, "attention.v", s.kv)};
}

/// Every head of every token by itself.
NormRows rows_of_heads(const PieceWriter& w, std::int64_t heads) {
  return {w.sizes().tokens * heads, w.in().shape.head_dim};
}

}  // namespace

void write_projections_forward(PieceWriter& w) {
  if (latent(w.in().shape)) return write_latent_projections_forward(w);
  write_column_forward(w, "layer.attention.qkv", query_key_value(w));
  if (w.in().shape.qk_norm) {
    write_inner_norm_forward(w, "layer.attention.q_norm", rows_of_heads(w, w.sizes().heads));
    write_inner_norm_forward(w, "layer.attention.k_norm", rows_of_heads(w, w.sizes().kv_heads));
  }
  write_rope(w, ".forward");
}

void write_projections_backward(PieceWriter& w, const ParameterTensors& unit) {
  if (latent(w.in().shape)) return write_latent_projections_backward(w, unit);
  write_rope(w, ".backward");
  if (w.in().shape.qk_norm) {
    write_inner_norm_backward(w, "layer.attention.q_norm", unit, "attention.q_norm",
                              rows_of_heads(w, w.sizes().heads));
    write_inner_norm_backward(w, "layer.attention.k_norm", unit, "attention.k_norm",
                              rows_of_heads(w, w.sizes().kv_heads));
  }
  write_joined_gradients(w, "layer.attention.qkv.concatenate", w.sizes().query + 2 * w.sizes().kv);
  write_column_backward(w, "layer.attention.qkv", unit, query_key_value(w));
}

void write_joined_gradients(PieceWriter& w, const std::string& name, std::int64_t width) {
  if (w.packed() && w.eager())
    w.pass(name, KernelFamily::copy, 2 * w.sizes().element * w.sizes().tokens * width);
}

}  // namespace stepcast::workloads
