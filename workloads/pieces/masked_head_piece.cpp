#include "workloads/pieces/masked_head_piece.hpp"

#include "workloads/pieces/norm_piece.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

constexpr std::int64_t classes = 2;  // the second segment follows the first, or does not

std::int64_t sequences(const PieceWriter& w) { return w.in().batch.micro_batch; }
std::int64_t pooled_bytes(const PieceWriter& w) {
  return w.sizes().element * sequences(w) * w.sizes().hidden;
}

/// Input gradient, weight gradient and bias gradient of a product (rows, out, in).
void dense_backward(PieceWriter& w, const ParameterTensors& unit, const std::string& name,
                    std::int64_t rows, std::int64_t out) {
  const std::int64_t in = w.sizes().hidden;
  w.gemm(name + ".dgrad", rows, in, out);
  w.weight_gradient(name + ".wgrad", out, in, rows);
  w.gradient(unit, name);
  w.pass(name + ".bias.gradient", reduction, w.sizes().element * rows * out);
  w.gradient(unit, name + ".bias");
}

}  // namespace

/// Rows picked: read and write 2A'; GELU 2A' (A' of the predicted positions).
void write_masked_transform_forward(PieceWriter& w) {
  const Sizes& s = w.sizes();
  w.pass("head.predicted", copy, 2 * s.hidden_bytes());
  w.gemm("head.transform.forward", s.tokens, s.hidden, s.hidden);
  w.pass("head.gelu", activation, 2 * s.hidden_bytes());
  write_norm_forward(w, "head.norm", false);
}

/// GELU backward 3A'; rows put back: zeros written, then the predicted rows read and written.
void write_masked_transform_backward(PieceWriter& w, const ParameterTensors& unit,
                                     std::int64_t whole) {
  const Sizes& s = w.sizes();
  w.pass("head.bias.gradient", reduction, s.element * s.tokens * s.vocab);
  w.gradient(unit, "head.bias");
  write_norm_backward(w, "head.norm", unit, "head.norm", false);
  w.pass("head.gelu.backward", activation, 3 * s.hidden_bytes());
  dense_backward(w, unit, "head.transform", s.tokens, s.hidden);
  w.pass("head.predicted.backward", copy, whole + 2 * s.hidden_bytes());
}

/// Of the first position of each sequence: tanh reads and writes; the loss of two classes.
void write_pooler_forward(PieceWriter& w) {
  const std::int64_t h = w.sizes().hidden;
  w.gemm("pooler.forward", sequences(w), h, h);
  w.pass("pooler.tanh", pointwise, 2 * pooled_bytes(w));
  w.gemm("next_sentence.forward", sequences(w), classes, h);
  w.pass_fp32("next_sentence.loss", softmax, 2 * 4 * classes * sequences(w));
}

void write_pooler_backward(PieceWriter& w, const ParameterTensors& unit) {
  w.pass_fp32("next_sentence.loss.backward", softmax, 2 * 4 * classes * sequences(w));
  dense_backward(w, unit, "next_sentence", sequences(w), classes);
  w.pass("pooler.tanh.backward", pointwise, 3 * pooled_bytes(w));
  dense_backward(w, unit, "pooler", sequences(w), w.sizes().hidden);
  w.pass("pooler.backward.add", pointwise, 3 * pooled_bytes(w));
}

}  // namespace stepcast::workloads
