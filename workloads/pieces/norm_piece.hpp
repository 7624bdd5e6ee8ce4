// Normalisation and residual sums of a layer, as each style of software issues them (recalled,
// 2026). A = bytes of the hidden tensor that the rank holds (T h, or T h / t with sequence
// parallel, x 2 bytes).
#pragma once

#include <string>

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

/// `residual_before`: the compiled kernel adds the residual first and writes the sum as well.
/// `quantizes`: what follows are products of the layer, and it may write their operand.
void write_norm_forward(PieceWriter&, const std::string& name, bool residual_before,
                        bool quantizes = false);
/// With the gradient that flows past the norm (the residual's) added to the result, unless this is
/// the final norm.
void write_norm_backward(PieceWriter&, const std::string& name, const ParameterTensors& unit,
                         const std::string& tensor, bool residual);

/// Norms within a layer, of heads or of low ranks: `rows` of `width` elements each.
struct NormRows {
  std::int64_t rows, width;
  std::int64_t elements() const { return rows * width; }
};
/// The rank's tokens of a layer's input.
inline NormRows hidden_rows(const PieceWriter& w) {
  return {w.sizes().local_tokens, w.sizes().hidden};
}
void write_inner_norm_forward(PieceWriter&, const std::string& name, NormRows);
void write_inner_norm_backward(PieceWriter&, const std::string& name, const ParameterTensors& unit,
                               const std::string& tensor, NormRows);

}  // namespace stepcast::workloads
