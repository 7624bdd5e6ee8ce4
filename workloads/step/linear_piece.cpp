#include "workloads/step/linear_piece.hpp"

#include "workloads/step/operand_piece.hpp"

namespace stepcast::workloads {
namespace {

/// GEMM (T, out, in).
void forward(PieceWriter& w, const Linear& l) {
  w.module();
  const std::string name = l.name + ".forward";
  if (l.low) return w.quantized_gemm(name, w.sizes().tokens, l.out, l.in);
  w.gemm(name, w.sizes().tokens, l.out, l.in);
}

/// GEMM (T, in, out). The trainer's own adds to that of the earlier products of the same input.
void input_gradient(PieceWriter& w, const Linear& l, bool first) {
  w.module();
  const std::string name = l.name + ".dgrad";
  if (l.low) return w.quantized_gemm(name, w.sizes().tokens, l.in, l.out);
  if (w.own() && !first)
    w.accumulating_gemm(name, w.sizes().tokens, l.in, l.out);
  else
    w.gemm(name, w.sizes().tokens, l.in, l.out);
}

/// GEMM (out, in, T); a bias gradient sums the output gradient over the tokens (reads T x out), or
/// is summed by Transformer Engine's cast of that.
void weight_gradient(PieceWriter& w, const ParameterTensors& unit, const Linear& l) {
  const std::string name = l.name + ".wgrad";
  if (l.low)
    w.quantized_weight_gradient(name, l.out, l.in, w.sizes().tokens);
  else
    w.weight_gradient(name, l.out, l.in, w.sizes().tokens);
  w.gradient(unit, l.tensor);
  if (!l.bias) return;
  if (!l.low || quantizes_again(w.in().software))
    w.pass(l.name + ".bias.gradient", KernelFamily::reduction,
           w.sizes().element * w.sizes().tokens * l.out);
  w.gradient(unit, l.tensor + ".bias");
}

/// Input gradients of GEMMs with one input are added: eager two at a time (3A each), otherwise in
/// one kernel that reads all and writes one.
void sum_input_gradients(PieceWriter& w, const std::string& name, const Linears& linears) {
  const auto count = static_cast<std::int64_t>(linears.size());
  if (count < 2 || w.own()) return;
  const std::int64_t a = w.sizes().hidden_bytes();
  if (w.eager())
    for (std::int64_t i = 1; i < count; ++i)
      w.pass(name + ".gradient_sum", KernelFamily::pointwise, 3 * a);
  else
    w.pass(name + ".gradient_sum", KernelFamily::pointwise, (count + 1) * a);
}

bool gathers_input_again(const PieceWriter& w) {
  return w.sequence_parallel() && w.in().software.regathers_inputs();
}

/// Gathers between tensor ranks move quantized operands.
bool gathers_low(const PieceWriter& w, const Linear& l) {
  return l.low && w.sequence_parallel() && gathers_quantized(w.in().precision);
}

/// Forward's copy of an input that linears share, and backward's where that is made at once: what
/// is gathered again is kept in rows, and transposed then; mxfp8 has both directions to gather.
void quantize_column_input(PieceWriter& w, const std::string& name, const Linear& l) {
  const Precision& p = w.in().precision;
  const bool low = gathers_low(w, l), again = gathers_input_again(w);
  const std::int64_t elements =
      (low ? w.sizes().local_tokens : w.sizes().tokens) * w.sizes().hidden;
  const bool columns = !quantizes_again(w.in().software) && (!again || p.recipe == Recipe::mxfp8);
  if (l.norm_casts)
    write_swizzles(w, name + ".input", elements);
  else
    write_casts(w, name + ".input", OperandRole::input, {.columns = columns}, elements, low);
}

/// The input's copy for wgrad, of `elements`, where forward has not made it.
void quantize_input_again(PieceWriter& w, const std::string& name, const Linear& l, bool regathered,
                          std::int64_t elements) {
  if (!l.low) return;
  const bool from_source = regathered ? !gathers_low(w, l) : quantizes_again(w.in().software);
  if (from_source)
    write_casts(w, name + ".input.again", OperandRole::input, {.rows = false}, elements);
  else if ((regathered || l.norm_casts) && scaled_per_tensor(w.in().precision))
    write_transposes(w, name + ".input", elements);
}

/// Both copies of an output gradient; torchao's mxfp8 makes each by a kernel of its own
/// (mx_linear.py, read 2026-11).
void quantize_gradient(PieceWriter& w, const Linear& l, std::int64_t elements) {
  if (!l.low) return;
  const std::string name = l.name + ".gradient";
  if (quantizes_again(w.in().software) && w.in().precision.recipe == Recipe::mxfp8) {
    write_casts(w, name, OperandRole::gradient, {.columns = false}, elements);
    return write_casts(w, name, OperandRole::gradient, {.rows = false}, elements);
  }
  write_casts(w, name, OperandRole::gradient, {}, elements);
}

/// A row-parallel layer's output gradient, gathered: quantized before, and then transposed.
void gather_gradient(PieceWriter& w, const Linear& l) {
  const std::int64_t whole = w.sizes().tokens * w.sizes().hidden;
  if (!gathers_low(w, l)) {
    if (w.sequence_parallel()) w.all_gather_hidden(l.name + ".backward");
    return quantize_gradient(w, l, whole);
  }
  const bool per_tensor = scaled_per_tensor(w.in().precision);
  write_casts(w, l.name + ".gradient", OperandRole::gradient, {.columns = !per_tensor},
              w.sizes().local_elements(), true);
  w.all_gather_quantized(l.name + ".backward", per_tensor ? 1 : 2);
  if (per_tensor) write_transposes(w, l.name + ".gradient", whole);
}

/// Async gather of the input, dgrad, wait, async reduction of the input gradient, wgrad, wait
/// (Megatron core_v0.12.0 tensor_parallel/layers.py:403-545).
void overlapped_backward(PieceWriter& w, const std::string& name, const ParameterTensors& unit,
                         const Linears& linears) {
  const bool regather = gathers_input_again(w);
  const Linear& first = linears.front();
  for (const Linear& l : linears) quantize_gradient(w, l, w.sizes().tokens * l.out);
  if (regather && gathers_low(w, first))
    w.begin_gather_quantized(name + ".regather");
  else if (regather)
    w.begin_hidden(name + ".regather", CollectiveKind::all_gather);
  for (const Linear& l : linears) input_gradient(w, l, &l == &first);
  sum_input_gradients(w, name, linears);
  if (regather) w.end();
  w.begin_hidden(name + ".backward", w.sequence_parallel() ? CollectiveKind::reduce_scatter
                                                           : CollectiveKind::all_reduce);
  quantize_input_again(w, name, first, regather, w.sizes().tokens * first.in);
  for (const Linear& l : linears) weight_gradient(w, unit, l);
  w.end();
}

void regather_input(PieceWriter& w, const std::string& name, const Linear& l) {
  if (!gathers_input_again(w)) return;
  if (gathers_low(w, l)) return w.all_gather_quantized(name + ".regather", 1);
  w.all_gather_hidden(name + ".regather");
}

}  // namespace

void write_column_forward(PieceWriter& w, const std::string& name, const Linears& linears) {
  const Linear& first = linears.front();
  if (gathers_low(w, first)) {
    quantize_column_input(w, name, first);
    w.all_gather_quantized(name + ".forward", 1);
  } else {
    if (w.sequence_parallel()) w.all_gather_hidden(name + ".forward");
    if (first.low) quantize_column_input(w, name, first);
  }
  for (const Linear& l : linears) forward(w, l);
}

void write_column_backward(PieceWriter& w, const std::string& name, const ParameterTensors& unit,
                           const Linears& linears) {
  if (w.split() && w.in().software.tensor.overlap)
    return overlapped_backward(w, name, unit, linears);
  const Linear& first = linears.front();
  regather_input(w, name, first);
  quantize_input_again(w, name, first, gathers_input_again(w), w.sizes().tokens * first.in);
  for (const Linear& l : linears) {
    quantize_gradient(w, l, w.sizes().tokens * l.out);
    input_gradient(w, l, &l == &first);
    weight_gradient(w, unit, l);
  }
  sum_input_gradients(w, name, linears);
  if (w.sequence_parallel())
    w.reduce_scatter_hidden(name + ".backward");
  else if (w.split())
    w.all_reduce_hidden(name + ".backward");
}

void write_row_forward(PieceWriter& w, const Linear& l) {
  if (l.low)
    write_casts(w, l.name + ".input", OperandRole::input,
                {.columns = !quantizes_again(w.in().software)}, w.sizes().tokens * l.in);
  forward(w, l);
  if (w.sequence_parallel())
    w.reduce_scatter_hidden(l.name + ".forward");
  else if (w.split())
    w.all_reduce_hidden(l.name + ".forward");
}

void write_row_backward(PieceWriter& w, const ParameterTensors& unit, const Linear& l) {
  gather_gradient(w, l);
  quantize_input_again(w, l.name, l, false, w.sizes().tokens * l.in);
  input_gradient(w, l, true);
  weight_gradient(w, unit, l);
}

}  // namespace stepcast::workloads
