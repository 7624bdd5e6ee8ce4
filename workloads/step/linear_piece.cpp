#include "workloads/step/linear_piece.hpp"

namespace stepcast::workloads {
namespace {

/// GEMM (T, out, in).
void forward(PieceWriter& w, const Linear& l) {
  w.module();
  w.gemm(l.name + ".forward", w.sizes().tokens, l.out, l.in);
}

/// GEMM (T, in, out). The trainer's own adds to that of the earlier products of the same input.
void input_gradient(PieceWriter& w, const Linear& l, bool first) {
  w.module();
  if (w.own() && !first)
    w.accumulating_gemm(l.name + ".dgrad", w.sizes().tokens, l.in, l.out);
  else
    w.gemm(l.name + ".dgrad", w.sizes().tokens, l.in, l.out);
}

/// GEMM (out, in, T); a bias gradient sums the output gradient over the tokens (reads T x out).
void weight_gradient(PieceWriter& w, const ParameterTensors& unit, const Linear& l) {
  w.for_weights(true);
  w.weight_gradient(l.name + ".wgrad", l.out, l.in, w.sizes().tokens);
  w.gradient(unit, l.tensor);
  if (l.bias) {
    w.pass(l.name + ".bias.gradient", KernelFamily::reduction,
           w.sizes().element * w.sizes().tokens * l.out);
    w.gradient(unit, l.tensor + ".bias");
  }
  w.for_weights(false);
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

/// Async gather of the input, dgrad, wait, async reduction of the input gradient, wgrad, wait
/// (Megatron core_v0.12.0 tensor_parallel/layers.py:403-545).
void overlapped_backward(PieceWriter& w, const std::string& name, const ParameterTensors& unit,
                         const Linears& linears) {
  const bool regather = gathers_input_again(w);
  if (regather) w.begin_hidden(name + ".regather", CollectiveKind::all_gather);
  for (const Linear& l : linears) input_gradient(w, l, &l == &linears.front());
  sum_input_gradients(w, name, linears);
  if (regather) w.end();
  w.begin_hidden(name + ".backward", w.sequence_parallel() ? CollectiveKind::reduce_scatter
                                                           : CollectiveKind::all_reduce);
  for (const Linear& l : linears) weight_gradient(w, unit, l);
  w.end();
}

}  // namespace

void write_column_forward(PieceWriter& w, const std::string& name, const Linears& linears) {
  if (w.sequence_parallel()) w.all_gather_hidden(name + ".forward");
  for (const Linear& l : linears) forward(w, l);
}

void write_column_backward(PieceWriter& w, const std::string& name, const ParameterTensors& unit,
                           const Linears& linears) {
  if (w.split() && w.in().software.tensor.overlap)
    return overlapped_backward(w, name, unit, linears);
  if (gathers_input_again(w)) w.all_gather_hidden(name + ".regather");
  for (const Linear& l : linears) {
    input_gradient(w, l, &l == &linears.front());
    weight_gradient(w, unit, l);
  }
  sum_input_gradients(w, name, linears);
  if (w.sequence_parallel())
    w.reduce_scatter_hidden(name + ".backward");
  else if (w.split())
    w.all_reduce_hidden(name + ".backward");
}

void write_row_forward(PieceWriter& w, const Linear& l) {
  forward(w, l);
  if (w.sequence_parallel())
    w.reduce_scatter_hidden(l.name + ".forward");
  else if (w.split())
    w.all_reduce_hidden(l.name + ".forward");
}

void write_row_backward(PieceWriter& w, const ParameterTensors& unit, const Linear& l) {
  if (w.sequence_parallel()) w.all_gather_hidden(l.name + ".backward");
  input_gradient(w, l, true);
  weight_gradient(w, unit, l);
}

}  // namespace stepcast::workloads
