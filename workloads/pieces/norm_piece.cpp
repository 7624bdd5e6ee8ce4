#include "workloads/pieces/norm_piece.hpp"

#include "workloads/pieces/operand_piece.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

/// Eager code writes RMSNorm out of torch's operators, unless it brings a kernel of its own.
bool composite(const PieceWriter& w) {
  return w.eager() && w.in().shape.norm == Norm::rmsnorm && !w.in().software.norm.fused;
}

/// x * rsqrt(mean(x^2) + eps) in fp32, then cast and weight: 7 kernels. Bytes an element of a
/// 2-byte tensor: upcast 2+4, square 4+4, mean 4, (rsqrt on T numbers), multiply 4+4, cast 4+2,
/// weight 2+2 = 36, i.e. 18A.
void eager_rmsnorm_forward(PieceWriter& w, const std::string& name, NormRows rows) {
  const std::int64_t elements = rows.elements();
  const std::int64_t e = w.sizes().element, row = rows.rows;
  w.pass(name + ".upcast", pointwise, (e + 4) * elements);
  w.pass_fp32(name + ".square", pointwise, 8 * elements);
  w.pass_fp32(name + ".mean", reduction, 4 * elements + 4 * row);
  w.pass_fp32(name + ".rsqrt", pointwise, 8 * row);
  w.pass_fp32(name + ".scale", pointwise, 8 * elements);
  w.pass(name + ".cast", pointwise, (4 + e) * elements);
  w.pass(name + ".weight", pointwise, 2 * e * elements);
}

/// Autograd of the above, 13 kernels, 38A: weight product 3A and its sum over rows A, input of the
/// weight 2A, upcast 3A; d(scale): 4A, product 6A, row sum 2A; rsqrt on T numbers; mean's
/// broadcast 2A, square 6A, sum of the two paths 6A, cast 3A.
void eager_rmsnorm_backward(PieceWriter& w, const std::string& name, NormRows rows) {
  const std::int64_t n = rows.elements();
  const std::int64_t e = w.sizes().element, row = rows.rows;
  if (!w.frozen()) {
    w.pass(name + ".weight.product", pointwise, 3 * e * n);
    w.pass(name + ".weight.sum", reduction, e * n);
  }
  w.pass(name + ".weight.backward", pointwise, 2 * e * n);
  w.pass(name + ".cast.backward", pointwise, (4 + e) * n);
  w.pass_fp32(name + ".scale.backward", pointwise, 8 * n);
  w.pass_fp32(name + ".scale.product", pointwise, 12 * n);
  w.pass_fp32(name + ".scale.sum", reduction, 4 * n + 4 * row);
  w.pass_fp32(name + ".rsqrt.backward", pointwise, 12 * row);
  w.pass_fp32(name + ".rsqrt.scale", pointwise, 8 * row);
  w.pass_fp32(name + ".mean.backward", pointwise, 4 * n);
  w.pass_fp32(name + ".square.backward", pointwise, 12 * n);
  w.pass_fp32(name + ".paths", pointwise, 12 * n);
  w.pass(name + ".upcast.backward", pointwise, (4 + e) * n);
}

/// TensorFlow 1's layer norm is made of operators, and automatic mixed precision keeps all after a
/// mean in fp32 until the next product (auto_mixed_precision_lists.h: Mean, Sum, Pow are denied
/// fp16). XLA joins what lies between two reductions. Bytes an element: mean reads 4, variance 4;
/// the result reads 4, writes 4 for the residual and e for the product.
void composite_forward(PieceWriter& w, const std::string& name, NormRows rows) {
  const std::int64_t n = rows.elements(), row = rows.rows;
  w.pass_fp32(name + ".mean", reduction, 4 * n + 4 * row);
  w.pass_fp32(name + ".variance", reduction, 4 * n + 4 * row);
  w.pass_fp32(name + ".result", pointwise, (8 + w.sizes().element) * n);
}

/// Of gradient and normalised input, 4 each: their sums over tokens, their sums over rows, then the
/// gradient of the input, which takes the residual's 4 and writes 4 and, for the product, e.
void composite_backward(PieceWriter& w, const std::string& name, NormRows rows) {
  const std::int64_t n = rows.elements(), row = rows.rows;
  if (!w.frozen()) w.pass_fp32(name + ".weight", reduction, 8 * n);
  w.pass_fp32(name + ".rows", reduction, 8 * n + 8 * row);
  w.pass_fp32(name + ".input", pointwise, (16 + w.sizes().element) * n);
}

void norm_gradients(PieceWriter& w, const ParameterTensors& unit, const std::string& tensor) {
  w.gradient(unit, tensor);
  if (w.in().shape.norm == Norm::layernorm) w.gradient(unit, tensor + ".bias");
}

/// Sum of the partial weight gradients that a fused backward kernel leaves: one fp32 row per
/// thread block, about two blocks on each of 132 SMs (derived).
void finalize(PieceWriter& w, const std::string& name, std::int64_t width) {
  constexpr std::int64_t partial_rows = 264;
  w.pass_fp32(name + ".finalize", reduction, 4 * partial_rows * width);
}

/// The norm alone: gradient of its input and of its weight. `adds`: in the same kernel also the
/// gradient that flows past it.
void backward_kernels(PieceWriter& w, const std::string& name, NormRows rows, bool adds) {
  const std::int64_t a = w.sizes().element * rows.elements();
  if (composite(w)) return eager_rmsnorm_backward(w, name, rows);
  if (w.in().software.composite_blocks) return composite_backward(w, name, rows);
  w.pass(name, norm_backward, (adds ? 4 : 3) * a);  // reads the gradient and x, writes dx
  if (w.frozen()) return;
  if (w.eager() && !w.in().software.norm.fused)
    w.pass(name + ".weight", reduction, 2 * a);  // torch: a second pass over both
  else if (!w.own())                             // which counts the sum as part of the kernel
    finalize(w, name, rows.width);
}

}  // namespace

void write_norm_forward(PieceWriter& w, const std::string& name, bool residual_before,
                        bool quantizes) {
  const std::int64_t a = w.sizes().local_bytes();
  if (composite(w) || w.in().software.composite_blocks)
    return write_inner_norm_forward(w, name, hidden_rows(w));
  // Reads its input; or two tensors, writes the sum as well, and reads the mask of its dropout.
  const std::int64_t mask = w.in().shape.dropout ? w.sizes().local_elements() : 0;
  w.pass(name + ".forward", norm,
         (residual_before ? 3 * a + mask : a) + (quantizes ? norm_output_bytes(w) : a));
}

void write_norm_backward(PieceWriter& w, const std::string& name, const ParameterTensors& unit,
                         const std::string& tensor, bool residual) {
  const bool blocks = w.in().software.composite_blocks && !composite(w);
  backward_kernels(w, name + ".backward", hidden_rows(w), w.compiled() && residual);
  norm_gradients(w, unit, tensor);
  if (residual && !blocks && !w.compiled())  // sum of the two gradients
    w.pass(name + ".backward.residual", pointwise, 3 * w.sizes().local_bytes());
}

void write_inner_norm_forward(PieceWriter& w, const std::string& name, NormRows rows) {
  if (composite(w)) return eager_rmsnorm_forward(w, name + ".forward", rows);
  if (w.in().software.composite_blocks) return composite_forward(w, name + ".forward", rows);
  // One kernel (torch's own LayerNorm too) reads and writes.
  w.pass(name + ".forward", norm, 2 * w.sizes().element * rows.elements());
}

void write_inner_norm_backward(PieceWriter& w, const std::string& name,
                               const ParameterTensors& unit, const std::string& tensor,
                               NormRows rows) {
  backward_kernels(w, name + ".backward", rows, false);
  norm_gradients(w, unit, tensor);
}

}  // namespace stepcast::workloads
