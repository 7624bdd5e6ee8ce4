#include "workloads/pieces/layer_piece.hpp"

#include "engine/arithmetic.hpp"
#include "workloads/pieces/attention_piece.hpp"
#include "workloads/pieces/expert_piece.hpp"
#include "workloads/pieces/latent_piece.hpp"
#include "workloads/pieces/linear_piece.hpp"
#include "workloads/pieces/mixer_piece.hpp"
#include "workloads/pieces/norm_piece.hpp"
#include "workloads/pieces/operand_piece.hpp"
#include "workloads/pieces/own_experts_piece.hpp"
#include "workloads/pieces/projection_piece.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

bool swiglu(const PieceWriter& w) { return w.in().shape.activation == Activation::swiglu; }

Linear linear(const PieceWriter& w, const std::string& tensor, std::int64_t in, std::int64_t out) {
  return {"layer." + tensor, tensor, in, out, w.in().shape.biases, w.low()};
}

/// Products of what the norm before them leaves, which it may have quantized.
Linear after_norm(const PieceWriter& w, const std::string& tensor, std::int64_t out) {
  Linear l = linear(w, tensor, w.sizes().hidden, out);
  l.norm_casts = w.low() && norms_quantize(w.in());
  return l;
}

Linears up_projections(const PieceWriter& w) {
  const Sizes& s = w.sizes();
  if (!swiglu(w)) return {after_norm(w, "mlp.up", s.ffn)};
  if (w.packed()) return {after_norm(w, "mlp.gate_up", 2 * s.ffn)};
  return {after_norm(w, "mlp.gate", s.ffn), after_norm(w, "mlp.up", s.ffn)};
}

bool has_norm_before(const PieceWriter& w) { return w.in().shape.norm_place != NormPlace::behind; }
bool has_norm_behind(const PieceWriter& w) { return w.in().shape.norm_place != NormPlace::before; }
bool has_mixer(const PieceWriter& w) { return w.kind().mixer != Mixer::none; }
bool has_mlp(const PieceWriter& w) { return w.kind().mlp != Mlp::none; }

/// Of a half's output, before it is added to what came in.
void norm_behind_forward(PieceWriter& w, const std::string& tensor) {
  if (has_norm_behind(w))
    write_inner_norm_forward(w, "layer." + tensor + ".behind", hidden_rows(w));
}
void norm_behind_backward(PieceWriter& w, const ParameterTensors& unit, const std::string& tensor) {
  if (has_norm_behind(w))
    write_inner_norm_backward(w, "layer." + tensor + ".behind", unit, tensor + ".behind",
                              hidden_rows(w));
}
/// Of the norm before a half, with the gradient that flows past it.
void norm_before_backward(PieceWriter& w, const ParameterTensors& unit, const std::string& tensor) {
  if (has_norm_before(w)) return write_norm_backward(w, "layer." + tensor, unit, tensor, true);
  w.pass("layer." + tensor + ".residual.backward", pointwise, 3 * w.sizes().local_bytes());
}

Linear output(const PieceWriter& w) {
  return linear(w, "attention.o", w.sizes().value, w.sizes().hidden);
}
Linear down(const PieceWriter& w) { return linear(w, "mlp.down", w.sizes().ffn, w.sizes().hidden); }

/// Residual sum: read two, write one, 3A. The compiled kernel of the next norm may hold it. Dropout
/// of the branch: eager 2.5A more (read, write, a byte mask); in one kernel with the sum the mask
/// alone, 0.5A.
void residual(PieceWriter& w, const std::string& name) {
  const std::int64_t a = w.sizes().local_bytes(), mask = w.sizes().local_elements();
  if (!w.in().shape.dropout) return w.pass(name, pointwise, 3 * a);
  if (!w.eager()) return w.pass(name, pointwise, 3 * a + mask);
  w.pass(name + ".dropout", pointwise, 2 * a + mask);
  w.pass(name, pointwise, 3 * a);
}

/// Gradient of a branch: read, mask, write, 2.5A.
void dropout_backward(PieceWriter& w, const std::string& name) {
  if (!w.in().shape.dropout) return;
  w.pass(name, pointwise, 2 * w.sizes().local_bytes() + w.sizes().local_elements());
}

/// A sigmoid of the gate times attention's output: reads both, writes; operators one by one.
void gate_forward(PieceWriter& w) {
  const std::int64_t gate = w.sizes().element * w.sizes().tokens * w.sizes().gate;
  const std::int64_t o = w.sizes().element * w.sizes().tokens * w.sizes().value;
  if (gate == 0) return;
  if (!w.eager()) return w.pass("layer.attention.gate.forward", pointwise, gate + 2 * o);
  w.pass("layer.attention.gate.sigmoid", pointwise, 2 * gate);
  w.pass("layer.attention.gate.forward", pointwise, gate + 2 * o);
}
/// Reads the gradient, output and gate, writes the gradients of both.
void gate_backward(PieceWriter& w) {
  const std::int64_t gate = w.sizes().element * w.sizes().tokens * w.sizes().gate;
  const std::int64_t o = w.sizes().element * w.sizes().tokens * w.sizes().value;
  if (gate == 0) return;
  w.pass("layer.attention.gate.backward", pointwise, 2 * gate + 3 * o);
  if (w.eager()) w.pass("layer.attention.gate.sigmoid.backward", pointwise, 3 * gate);
}

void softmax_attention_forward(PieceWriter& w) {
  write_projections_forward(w);
  write_index_forward(w);
  write_attention_core_forward(w);
  gate_forward(w);
  write_row_forward(w, output(w));
}

/// The sum of attention's output and a state space's that stands beside it.
void sum_both(PieceWriter& w, const std::string& name) {
  if (w.kind().mixer == Mixer::both) w.pass(name, pointwise, 3 * w.sizes().local_bytes());
}

/// The compiled kernel of the next norm holds the residual sum, where there is one in the layer.
bool next_norm_adds(const PieceWriter& w) {
  return w.compiled() && has_mixer(w) && has_mlp(w) && has_norm_before(w);
}

void attention_half_forward(PieceWriter& w) {
  if (!has_mixer(w)) return;
  w.begin_graph();
  const Mixer mixer = w.kind().mixer;
  if (has_norm_before(w))
    write_norm_forward(w, "layer.norm1", false, attends(mixer) && !latent(w.in().shape));
  if (attends(mixer)) softmax_attention_forward(w);
  if (mixer == Mixer::delta) write_delta_forward(w);
  if (has_state_space(mixer)) write_state_space_forward(w);
  sum_both(w, "layer.mixers.sum");
  norm_behind_forward(w, "norm1");
  if (!next_norm_adds(w)) residual(w, "layer.attention.residual");
}

/// GELU as x (1 + tanh(c (x + b x^3))) / 2 in TensorFlow 1, in fp32 as x^3 is denied fp16; XLA
/// joins all but the functions it deems expensive, power and tanh, whose results it keeps for
/// backward (xla/service/instruction_fusion.cc). Bytes an element: power reads e, writes 4; tanh e
/// + 4 and 4; product e + 4 and e.
void composite_gelu_forward(PieceWriter& w) {
  const std::int64_t n = w.sizes().tokens * w.sizes().ffn, e = w.sizes().element;
  w.pass_fp32("layer.mlp.gelu.power", activation, (e + 4) * n);
  w.pass_fp32("layer.mlp.gelu.tanh", activation, (e + 8) * n);
  w.pass("layer.mlp.gelu.product", activation, (2 * e + 4) * n);
}

/// SwiGLU: eager silu 2F and multiply 3F, otherwise one kernel 3F. GELU: 2F.
void activation_forward(PieceWriter& w) {
  const std::int64_t f = w.sizes().ffn_bytes();
  if (!swiglu(w) && w.in().software.composite_blocks) return composite_gelu_forward(w);
  if (!swiglu(w)) return w.pass("layer.mlp.gelu", activation, 2 * f);
  if (!w.eager()) return w.pass("layer.mlp.swiglu", activation, 3 * f);
  w.pass("layer.mlp.silu", pointwise, 2 * f);
  w.pass("layer.mlp.multiply", pointwise, 3 * f);
}

/// SwiGLU: eager d(up) 3F, d(silu) 3F, silu backward 3F; otherwise one kernel 5F. GELU: 3F; of
/// operators it reads power and tanh, 4 bytes an element each, as well.
void activation_backward(PieceWriter& w) {
  const std::int64_t f = w.sizes().ffn_bytes();
  if (!swiglu(w) && w.in().software.composite_blocks)
    return w.pass("layer.mlp.gelu.backward", activation,
                  3 * f + 8 * w.sizes().tokens * w.sizes().ffn);
  if (!swiglu(w)) return w.pass("layer.mlp.gelu.backward", activation, 3 * f);
  if (!w.eager()) return w.pass("layer.mlp.swiglu.backward", activation, 5 * f);
  w.pass("layer.mlp.multiply.backward_up", pointwise, 3 * f);
  w.pass("layer.mlp.multiply.backward_gate", pointwise, 3 * f);
  w.pass("layer.mlp.silu.backward", pointwise, 3 * f);
}

/// Recompute of norms is of those that stand alone, before experts and before latent attention:
/// others are inside the product that they feed (Megatron core 0.12 transformer_layer.py).
bool attention_norm_again(const PieceWriter& w) {
  return recomputes(w, LayerModule::norm) && latent(w.in().shape) && has_norm_before(w);
}
bool mlp_norm_again(const PieceWriter& w) {
  return recomputes(w, LayerModule::norm) && w.kind().experts() && has_norm_before(w);
}

/// A part of forward that backward runs again.
template <class Write>
void again(PieceWriter& w, bool runs, Write write) {
  if (!runs) return;
  w.from_python(true);
  write();
  w.from_python(false);
}

void up_and_activation_forward(PieceWriter& w) {
  write_column_forward(w, "layer.mlp.up", up_projections(w));
  activation_forward(w);
}

/// Of our own trainer all that backward reads, of the others the whole.
void experts_inner_forward(PieceWriter& w) {
  w.own() ? write_own_experts_inner(w) : write_experts_forward(w);
}

/// `write` of one tile of the sequence, as often as the MLP has tiles (DeepSpeed
/// runtime/sequence_parallel/ulysses_sp.py, TiledMLP, read 2026-11).
template <class Write>
void by_tiles(PieceWriter& w, Write write) {
  const std::int64_t tiles = w.in().plan.mlp_tiles;
  if (tiles == 1 || w.kind().experts()) return write(w);
  const StepInputs& in = w.in();
  const std::int64_t tokens = ceil_div(w.sizes().tokens, tiles);
  const Batch batch{1, in.batch.micro_batches, tokens * in.plan.context};
  const StepInputs part{in.shape, in.plan, batch, in.precision, in.software};
  PieceWriter tile = w.of_part(part);
  write(tile);
  const Piece piece = tile.take();
  for (std::int64_t i = 0; i < tiles; ++i) w.append(piece);
}

void mlp_inner_forward(PieceWriter& w) {
  if (!has_mlp(w)) return;
  if (has_norm_before(w))
    write_norm_forward(w, "layer.norm2", next_norm_adds(w), !w.kind().experts());
  if (w.kind().experts()) return experts_inner_forward(w);
  by_tiles(w, [](PieceWriter& tile) {
    up_and_activation_forward(tile);
    if (tile.in().plan.mlp_tiles > 1) write_row_forward(tile, down(tile));
  });
}

void mlp_half_forward(PieceWriter& w) {
  if (!has_mlp(w)) return;
  if (!w.kind().experts()) w.begin_node(LayerNode::experts);
  mlp_inner_forward(w);
  if (w.kind().experts() && w.own()) write_own_experts_outer(w);
  if (!w.kind().experts() && w.in().plan.mlp_tiles == 1) write_row_forward(w, down(w));
  norm_behind_forward(w, "norm2");
  residual(w, "layer.mlp.residual");
}

void experts_backward(PieceWriter& w, const ParameterTensors& unit) {
  w.own() ? write_own_experts_backward(w, unit) : write_experts_backward(w, unit);
}

void dense_tile_backward(PieceWriter& w, const ParameterTensors& unit) {
  const bool tiled = w.in().plan.mlp_tiles > 1;
  again(w, tiled || recomputes(w, LayerModule::mlp), [&] { up_and_activation_forward(w); });
  write_row_backward(w, unit, down(w));
  activation_backward(w);
  if (swiglu(w)) write_joined_gradients(w, "layer.mlp.gate_up.concatenate", 2 * w.sizes().ffn);
  write_column_backward(w, "layer.mlp.up", unit, up_projections(w));
  if (!tiled) return;
  // Autograd adds each tile's gradients of the weights to the others' (read two, write one).
  const std::int64_t weights = (swiglu(w) ? 3 : 2) * w.sizes().hidden * w.sizes().ffn;
  w.pass("layer.mlp.gradient_sum", pointwise, 3 * w.sizes().element * weights);
}

/// Of tiles the last one's gradients are complete.
void dense_mlp_backward(PieceWriter& w, const ParameterTensors& unit) {
  if (w.in().plan.mlp_tiles == 1) return dense_tile_backward(w, unit);
  by_tiles(w, [&](PieceWriter& tile) { dense_tile_backward(tile, unit); });
  w.keep_last_gradients();
}

void mlp_half_backward(PieceWriter& w, const ParameterTensors& unit) {
  if (!has_mlp(w)) return;
  dropout_backward(w, "layer.mlp.dropout.backward");
  norm_behind_backward(w, unit, "norm2");
  again(w, mlp_norm_again(w), [&] { write_norm_forward(w, "layer.norm2", false, false); });
  w.kind().experts() ? experts_backward(w, unit) : dense_mlp_backward(w, unit);
  norm_before_backward(w, unit, "norm2");
}

void softmax_attention_backward(PieceWriter& w, const ParameterTensors& unit) {
  write_row_backward(w, unit, output(w));
  gate_backward(w);
  again(w, makes_latent_up_again(w.in()), [&] { write_latent_up_forward(w); });
  again(w, w.in().core_again(), [&] { write_attention_core_forward(w); });
  write_attention_core_backward(w);
  if (w.in().shape.sinks) w.gradient(unit, "attention.sinks");
  again(w, attention_norm_again(w), [&] { write_norm_forward(w, "layer.norm1", false, false); });
  write_index_backward(w, unit);
  write_projections_backward(w, unit);
}

void attention_half_backward(PieceWriter& w, const ParameterTensors& unit) {
  if (!has_mixer(w)) return;
  w.begin_node(LayerNode::attention);
  w.begin_graph();
  dropout_backward(w, "layer.attention.dropout.backward");
  norm_behind_backward(w, unit, "norm1");
  if (has_state_space(w.kind().mixer)) write_state_space_backward(w, unit);
  if (w.kind().mixer == Mixer::delta) write_delta_backward(w, unit);
  if (attends(w.kind().mixer)) softmax_attention_backward(w, unit);
  sum_both(w, "layer.mixers.gradient_sum");
  norm_before_backward(w, unit, "norm1");
}

void whole_forward(PieceWriter& w) {
  w.from_python(true);
  attention_half_forward(w);
  mlp_half_forward(w);
}

/// What recompute of a layer runs again. torch's non-reentrant checkpoint ends as soon as backward
/// has all that it needs (torch.utils.checkpoint set_checkpoint_early_stop, on since torch 2.1,
/// 2023-10): backward needs the input of the last product, not its output.
/// What compiled code saves by operators is what backward needs, so that product is not run.
Piece layer_again(const StepInputs& in, KernelTable& table, LayerKind kind) {
  const bool operators = in.operators_again();
  const bool stops = in.software.recompute_stops || (operators && in.software.compiled());
  if (!stops && !operators) return layer_forward(in, table, kind);
  PieceWriter w(in, table, kind);
  if (operators) w.again_by_operators(nullptr);
  if (!stops) {
    whole_forward(w);
    return w.take();
  }
  w.from_python(true);
  attention_half_forward(w);
  mlp_inner_forward(w);
  return w.take();
}

}  // namespace

std::vector<std::int64_t> saved_by_operators(const StepInputs& model, LayerKind kind) {
  KernelTable table;
  const LayerInputs layer(model, kind);
  const StepInputs& in = layer.get();
  PieceWriter w(in, table, kind);
  std::vector<std::int64_t> saved;
  w.again_by_operators(&saved);
  if (in.software.compiled()) {
    attention_half_forward(w);
    mlp_inner_forward(w);
  } else {
    whole_forward(w);
  }
  return saved;
}

Piece layer_forward(const StepInputs& model, KernelTable& table, LayerKind kind) {
  const LayerInputs layer(model, kind);
  PieceWriter w(layer.get(), table, kind);
  whole_forward(w);
  w.end_graph();
  return w.take();
}

Piece layer_backward(const StepInputs& model, KernelTable& table, const ParameterTensors& unit,
                     LayerKind kind) {
  const LayerInputs layer(model, kind);
  const StepInputs& in = layer.get();
  PieceWriter w(in, table, kind);
  if (in.plan.recompute == Recompute::full || in.operators_again())
    w.append(layer_again(in, table, kind));
  w.begin_node(w.kind().experts() ? LayerNode::rest : LayerNode::experts);
  if (!w.kind().experts()) w.begin_graph();
  mlp_half_backward(w, unit);
  attention_half_backward(w, unit);
  return w.take();
}

}  // namespace stepcast::workloads
