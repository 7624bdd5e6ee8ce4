#include "workloads/pieces/linear_piece.hpp"

#include <algorithm>

#include "workloads/pieces/adapter_piece.hpp"
#include "workloads/pieces/operand_piece.hpp"
#include "workloads/plan/low_precision.hpp"

namespace stepcast::workloads {
namespace {

std::int64_t rows_of(const PieceWriter& w, const Linear& l) {
  return l.rows > 0 ? l.rows : w.sizes().tokens;
}
/// Of the one input that linears share.
std::int64_t input_elements(const PieceWriter& w, const Linear& l) { return rows_of(w, l) * l.in; }
std::int64_t input_bytes(const PieceWriter& w, const Linear& l) {
  return w.sizes().element * input_elements(w, l);
}

/// Of one of `parts` equal parts of the rows: GEMM (T, out, in).
void forward_product(PieceWriter& w, const Linear& l, std::int64_t parts) {
  const std::string name = l.name + ".forward";
  const std::int64_t rows = rows_of(w, l) / parts;
  if (l.low) return w.quantized_gemm(name, rows, l.out, l.in);
  w.gemm(name, rows, l.out, l.in);
}

void forward(PieceWriter& w, const Linear& l) {
  if (w.saves_product(w.sizes().element * rows_of(w, l) * l.out, l.low)) return;
  w.module();
  write_dequantize(w, l);
  forward_product(w, l, 1);
}

/// GEMM (T, in, out). The trainer's own adds to that of the earlier products of the same input.
void gradient_product(PieceWriter& w, const Linear& l, bool first, std::int64_t parts) {
  const std::string name = l.name + ".dgrad";
  const std::int64_t rows = rows_of(w, l) / parts;
  if (l.low) return w.quantized_gemm(name, rows, l.in, l.out);
  if (w.own() && !first)
    w.accumulating_gemm(name, rows, l.in, l.out);
  else
    w.gemm(name, rows, l.in, l.out);
}

void input_gradient(PieceWriter& w, const Linear& l, bool first) {
  w.module();
  write_dequantize(w, l);
  gradient_product(w, l, first, 1);
}

/// GEMM (out, in, T); a bias gradient sums the output gradient over the tokens (reads T x out), or
/// is summed by Transformer Engine's cast of that.
void weight_gradient(PieceWriter& w, const ParameterTensors& unit, const Linear& l) {
  if (w.frozen()) return;
  const std::string name = l.name + ".wgrad";
  w.for_weights(true);
  if (l.low)
    w.quantized_weight_gradient(name, l.out, l.in, rows_of(w, l));
  else
    w.weight_gradient(name, l.out, l.in, rows_of(w, l));
  w.gradient(unit, l.tensor);
  if (l.bias) {
    if (!l.low || quantizes_again(w.in().software))
      w.pass(l.name + ".bias.gradient", KernelFamily::reduction,
             w.sizes().element * rows_of(w, l) * l.out);
    w.gradient(unit, l.tensor + ".bias");
  }
  w.for_weights(false);
}

/// Input gradients of GEMMs with one input are added: eager two at a time (3A each), otherwise in
/// one kernel that reads all and writes one.
void sum_input_gradients(PieceWriter& w, const std::string& name, const Linears& linears) {
  auto count = static_cast<std::int64_t>(linears.size());
  for (const Linear& l : linears) count += std::ssize(adapters_of(w, l));
  if (count < 2 || w.own()) return;
  const std::int64_t a = input_bytes(w, linears.front());
  if (w.eager())
    for (std::int64_t i = 1; i < count; ++i)
      w.pass(name + ".gradient_sum", KernelFamily::pointwise, 3 * a);
  else
    w.pass(name + ".gradient_sum", KernelFamily::pointwise, (count + 1) * a);
}

bool gathers_input_again(const PieceWriter& w, const Linears& linears) {
  const bool read = !w.frozen() || std::ranges::any_of(linears, [&](const Linear& l) {
    return !adapters_of(w, l).empty();
  });
  return read && w.sequence_parallel() && w.in().software.regathers_inputs();
}

/// Gathers between tensor ranks move quantized operands.
bool gathers_low(const PieceWriter& w, const Linear& l) {
  return l.low && w.sequence_parallel() && gathers_quantized(w.in().precision);
}

/// Forward's copy of an input that linears share, and backward's where that is made at once: what
/// is gathered again is kept in rows, and transposed then; mxfp8 has both directions to gather.
void quantize_column_input(PieceWriter& w, const std::string& name, const Linear& l) {
  const Precision& p = w.in().precision;
  const bool low = gathers_low(w, l), again = gathers_input_again(w, {l});
  const std::int64_t elements = input_elements(w, l) / (low ? w.in().plan.tensor : 1);
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
  w.all_gather_quantized(l.name + ".backward", whole, per_tensor ? 1 : 2);
  if (per_tensor) write_transposes(w, l.name + ".gradient", whole);
}

/// What plan.tensor_overlap says of the four products of a dense layer that it knows (Transformer
/// Engine's qkv, proj, fc1, fc2; torch compiles the layers alone).
TensorOverlap overlap_of(const PieceWriter& w, const std::string& name) {
  constexpr const char* known[] = {"layer.attention.qkv", "layer.attention.o", "layer.mlp.up",
                                   "layer.mlp.down"};
  const bool is_known = std::ranges::find(known, name) != std::end(known);
  return w.sequence_parallel() && is_known && !w.by_operators() ? w.in().plan.tensor_overlap
                                                                : TensorOverlap::none;
}

/// Parts of a product run on three streams in turn (Transformer Engine,
/// common/comm_gemm_overlap/comm_gemm_overlap.cpp, _stream_compute, at most
/// NVTE_COMM_OVERLAP_MAX_STREAMS, read 2026-11), in torch on two (distributed/_symmetric_memory, a
/// backend stream beside the current one; recalled, 2026), so that those too small for all SMs fill
/// them.
std::int64_t streams_of(const PieceWriter& w, std::int64_t parts) {
  const std::int64_t most = w.in().plan.tensor_overlap == TensorOverlap::userbuffers ? 3 : 2;
  return std::min(most, parts);
}

/// A gather by t - 1 copies round the ring, each beside the product of the part that came before:
/// with C and G the times of a copy and of the product of a part, (t - 1) max(C, G) + G.
template <class Part>
void gather_by_ring(PieceWriter& w, const std::string& name, Dtype dtype, std::int64_t bytes,
                    Part part) {
  const std::int64_t t = w.in().plan.tensor;
  w.on_streams(streams_of(w, t));
  for (std::int64_t step = 0; step < t; ++step) {
    const bool last = step + 1 == t;
    if (!last) w.start_tensor_ring(name, dtype, bytes / t);
    part();
    w.from_library(true);
    if (!last) w.end();
  }
  w.on_streams(1);
  w.from_library(false);
}

/// The product of each part is copied to its owner beside the next part's, the own part comes last;
/// then the owner adds up t parts (reads all, writes one).
template <class Part>
void scatter_by_copies(PieceWriter& w, const std::string& name, std::int64_t bytes, Part part) {
  const std::int64_t t = w.in().plan.tensor;
  w.on_streams(streams_of(w, t));
  for (std::int64_t step = 0; step < t; ++step) {
    part();
    w.from_library(true);
    if (step + 1 < t) w.start_tensor_ring(name, w.in().precision.compute, bytes / t);
  }
  w.end();
  w.on_streams(1);
  w.from_library(false);
  w.pass(name + ".sum", KernelFamily::pointwise, bytes + bytes / t);
}

/// User buffers: the product in 4 parts, each reduced and scattered beside the next.
void scatter_in_parts(PieceWriter& w, const Linear& l) {
  std::int64_t parts = 4;
  while (rows_of(w, l) % parts != 0) parts /= 2;
  w.on_streams(streams_of(w, parts));
  for (std::int64_t part = 0; part < parts; ++part) {
    forward_product(w, l, parts);
    w.from_library(true);
    w.begin(l.name + ".forward", CollectiveKind::reduce_scatter, w.sizes().hidden_bytes() / parts);
  }
  w.end();
  w.on_streams(1);
  w.from_library(false);
}

void column_forward_by_ring(PieceWriter& w, const std::string& name, const Linears& linears) {
  const Linear& first = linears.front();
  const std::int64_t t = w.in().plan.tensor;
  const bool low = gathers_low(w, first);
  if (low) quantize_column_input(w, name, first);
  const std::int64_t bytes =
      low ? copy_bytes(w.in().precision, OperandRole::input, input_elements(w, first))
          : input_bytes(w, first);
  for (std::size_t l = 0; l < linears.size(); ++l) w.module();
  gather_by_ring(w, name + ".forward", low ? Dtype::fp8 : w.in().precision.compute, bytes, [&] {
    for (const Linear& l : linears) forward_product(w, l, t);
  });
}

/// The output gradient's gather under dgrad.
void row_backward_by_ring(PieceWriter& w, const Linear& l) {
  const std::int64_t t = w.in().plan.tensor, whole = w.sizes().tokens * w.sizes().hidden;
  const bool low = gathers_low(w, l), per_tensor = scaled_per_tensor(w.in().precision);
  std::int64_t bytes = w.sizes().hidden_bytes();
  if (low) {
    write_casts(w, l.name + ".gradient", OperandRole::gradient, {.columns = !per_tensor},
                w.sizes().local_elements(), true);
    bytes = (per_tensor ? 1 : 2) * copy_bytes(w.in().precision, OperandRole::input, whole);
  }
  w.module();
  gather_by_ring(w, l.name + ".backward", low ? Dtype::fp8 : w.in().precision.compute, bytes,
                 [&] { gradient_product(w, l, true, t); });
  if (low && per_tensor) write_transposes(w, l.name + ".gradient", whole);
}

/// Async gather of the input, dgrad, wait, async reduction of the input gradient, wgrad, wait
/// (Megatron core_v0.12.0 tensor_parallel/layers.py:403-545).
void overlapped_backward(PieceWriter& w, const std::string& name, const ParameterTensors& unit,
                         const Linears& linears) {
  const bool regather = gathers_input_again(w, linears);
  const bool buffers = overlap_of(w, name) == TensorOverlap::userbuffers;
  const Linear& first = linears.front();
  for (const Linear& l : linears) quantize_gradient(w, l, rows_of(w, l) * l.out);
  w.from_library(buffers);
  if (regather && gathers_low(w, first))
    w.begin_gather_quantized(name + ".regather", input_elements(w, first));
  else if (regather)
    w.begin(name + ".regather", CollectiveKind::all_gather, input_bytes(w, first));
  w.from_library(false);
  for (const Linear& l : linears) input_gradient(w, l, &l == &first);
  if (regather && w.frozen()) w.end();
  for (const Linear& l : linears) write_adapters_backward(w, unit, l);
  sum_input_gradients(w, name, linears);
  if (regather && !w.frozen()) w.end();
  w.from_library(buffers);
  w.begin(name + ".backward",
          w.sequence_parallel() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
          input_bytes(w, first));
  w.from_library(false);
  quantize_input_again(w, name, first, regather, input_elements(w, first));
  for (const Linear& l : linears) weight_gradient(w, unit, l);
  w.end();
}

void backward_products(PieceWriter& w, const std::string& name, const ParameterTensors& unit,
                       const Linears& linears) {
  for (const Linear& l : linears) {
    quantize_gradient(w, l, rows_of(w, l) * l.out);
    input_gradient(w, l, &l == &linears.front());
    weight_gradient(w, unit, l);
    write_adapters_backward(w, unit, l);
  }
  sum_input_gradients(w, name, linears);
}

void regather_input(PieceWriter& w, const std::string& name, const Linears& linears) {
  if (!gathers_input_again(w, linears)) return;
  const Linear& l = linears.front();
  if (gathers_low(w, l)) return w.all_gather_quantized(name + ".regather", input_elements(w, l), 1);
  w.collective(name + ".regather", CollectiveKind::all_gather, w.in().precision.compute,
               input_bytes(w, l));
}

}  // namespace

void write_column_forward(PieceWriter& w, const std::string& name, const Linears& linears) {
  if (overlap_of(w, name) != TensorOverlap::none) return column_forward_by_ring(w, name, linears);
  const Linear& first = linears.front();
  if (gathers_low(w, first)) {
    quantize_column_input(w, name, first);
    w.all_gather_quantized(name + ".forward", input_elements(w, first), 1);
  } else {
    if (w.sequence_parallel())
      w.collective(name + ".forward", CollectiveKind::all_gather, w.in().precision.compute,
                   input_bytes(w, first));
    if (first.low) quantize_column_input(w, name, first);
  }
  for (const Linear& l : linears) {
    forward(w, l);
    write_adapters_forward(w, l);
  }
}

void write_column_backward(PieceWriter& w, const std::string& name, const ParameterTensors& unit,
                           const Linears& linears) {
  const TensorOverlap overlap = overlap_of(w, name);
  if (w.split() && (w.in().software.tensor.overlap || overlap == TensorOverlap::userbuffers))
    return overlapped_backward(w, name, unit, linears);
  const Linear& first = linears.front();
  regather_input(w, name, linears);
  quantize_input_again(w, name, first, gathers_input_again(w, linears), input_elements(w, first));
  // Sums of several products are no pattern that Inductor pipelines.
  if (overlap == TensorOverlap::async_tp && linears.size() == 1) {
    quantize_gradient(w, first, rows_of(w, first) * first.out);
    w.module();
    scatter_by_copies(w, name + ".backward", input_bytes(w, first),
                      [&] { gradient_product(w, first, true, w.in().plan.tensor); });
    return weight_gradient(w, unit, first);
  }
  backward_products(w, name, unit, linears);
  if (w.split())
    w.collective(
        name + ".backward",
        w.sequence_parallel() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
        w.in().precision.compute, input_bytes(w, first));
}

void write_whole_forward(PieceWriter& w, const Linears& linears) {
  const Linear& first = linears.front();
  if (first.low && first.norm_casts)
    write_swizzles(w, first.name + ".input", input_elements(w, first));
  else if (first.low)
    write_casts(w, first.name + ".input", OperandRole::input,
                {.columns = !quantizes_again(w.in().software)}, input_elements(w, first));
  for (const Linear& l : linears) forward(w, l);
}

void write_whole_backward(PieceWriter& w, const std::string& name, const ParameterTensors& unit,
                          const Linears& linears) {
  const Linear& first = linears.front();
  quantize_input_again(w, name, first, false, input_elements(w, first));
  backward_products(w, name, unit, linears);
}

void write_row_forward(PieceWriter& w, const Linear& l) {
  if (l.low)
    write_casts(w, l.name + ".input", OperandRole::input,
                {.columns = !quantizes_again(w.in().software)}, input_elements(w, l));
  switch (overlap_of(w, l.name)) {
    case TensorOverlap::none:
      break;
    case TensorOverlap::userbuffers:
      w.module();
      return scatter_in_parts(w, l);
    case TensorOverlap::async_tp:
      w.module();
      return scatter_by_copies(w, l.name + ".forward", w.sizes().hidden_bytes(),
                               [&] { forward_product(w, l, w.in().plan.tensor); });
  }
  forward(w, l);
  if (w.sequence_parallel())
    w.reduce_scatter_hidden(l.name + ".forward");
  else if (w.split())
    w.all_reduce_hidden(l.name + ".forward");
  write_adapters_forward(w, l);
}

void write_row_backward(PieceWriter& w, const ParameterTensors& unit, const Linear& l) {
  const bool ring = overlap_of(w, l.name) != TensorOverlap::none;
  ring ? row_backward_by_ring(w, l) : gather_gradient(w, l);
  quantize_input_again(w, l.name, l, false, input_elements(w, l));
  if (!ring) input_gradient(w, l, true);
  weight_gradient(w, unit, l);
  write_adapters_backward(w, unit, l);
  sum_input_gradients(w, l.name, {l});
}

}  // namespace stepcast::workloads
