#include "workloads/pieces/mixer_piece.hpp"

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "workloads/pieces/linear_piece.hpp"
#include "workloads/pieces/norm_piece.hpp"
#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

DeltaShape delta_of(const StepInputs& in) { return delta_of_rank(in.shape.delta, in.plan.tensor); }
StateSpaceShape state_space_of(const StepInputs& in) {
  return state_space_of_rank(in.shape.state_space, in.plan.tensor);
}

Linear in_projection(const PieceWriter& w, const std::string& mixer, std::int64_t width) {
  return {.name = "layer." + mixer + ".in",
          .tensor = mixer + ".in",
          .in = w.sizes().hidden,
          .out = width,
          .low = w.low()};
}
Linear out_projection(const PieceWriter& w, const std::string& mixer, std::int64_t width) {
  return {.name = "layer." + mixer + ".out",
          .tensor = mixer + ".out",
          .in = width,
          .out = w.sizes().hidden,
          .low = w.low()};
}

/// With context ranks a rank has whole sequences of some heads between the two projections: one
/// exchange each way, whatever it consists of (Megatron core ssm/gated_delta_net.py,
/// mamba_context_parallel.py, read 2026-08).
void exchange_mixer(PieceWriter& w, const std::string& name, std::int64_t width) {
  if (w.in().plan.context == 1) return;
  w.context_collective("context." + name, CollectiveKind::all_to_all,
                       w.sizes().element * w.sizes().tokens * width);
}

/// A recurrence: `flops` of each token and head.
Kernel recurrence(const PieceWriter& w, const std::string& name, KernelFamily family,
                  std::int64_t heads, std::int64_t groups, double flops) {
  Kernel kernel;
  kernel.name = name;
  kernel.family = family;
  kernel.dtype = w.in().precision.compute;
  kernel.batch = w.in().batch.micro_batch;
  kernel.sequence = w.in().batch.sequence;
  kernel.heads = std::max<std::int64_t>(1, heads / w.in().plan.context);
  kernel.kv_heads = std::max<std::int64_t>(1, groups / w.in().plan.context);
  kernel.flops = Flops(flops * static_cast<double>(w.sizes().tokens * heads));
  return kernel;
}

/// One kernel reads and writes; its backward reads the gradient and the input, and writes.
void convolve(PieceWriter& w, const std::string& mixer, std::int64_t width) {
  w.pass("layer." + mixer + ".conv.forward", pointwise,
         2 * w.sizes().element * w.sizes().tokens * width);
}
void convolve_backward(PieceWriter& w, const std::string& mixer, std::int64_t width) {
  w.pass("layer." + mixer + ".conv.backward", pointwise,
         3 * w.sizes().element * w.sizes().tokens * width);
}

/// A norm of what leaves times a gate: reads both, writes; backward reads the gradient and both,
/// writes the gradients of both.
void gated_norm(PieceWriter& w, const std::string& mixer, std::int64_t width) {
  w.pass("layer." + mixer + ".norm.forward", norm,
         3 * w.sizes().element * w.sizes().tokens * width);
}
void gated_norm_backward(PieceWriter& w, const std::string& mixer, std::int64_t width) {
  w.pass("layer." + mixer + ".norm.backward", norm_backward,
         5 * w.sizes().element * w.sizes().tokens * width);
}

// ---- gated delta rule

Kernel delta_core(const PieceWriter& w, bool backward) {
  const DeltaShape d = delta_of(w.in());
  const auto forward = static_cast<double>(delta_flops(d));
  Kernel kernel =
      recurrence(w, std::string("layer.delta.core.") + (backward ? "backward" : "forward"),
                 backward ? delta_backward : delta_forward, d.value_heads, d.key_heads,
                 backward ? forward * delta_backward_flops : forward);
  kernel.head_dim = d.key_dim;
  kernel.value_dim = d.value_dim;
  const std::int64_t row = 2 * d.value_heads * d.key_dim + 2 * d.values();  // q, k, v, o
  kernel.bytes = Bytes((backward ? 3 : 1) * w.sizes().element * w.sizes().tokens * row);
  return kernel;
}

/// Deterministic mode of Megatron core has no kernels of the recurrence
/// (torch_chunk_gated_delta_rule() of megatron/core/ssm/gated_delta_net.py at 0.18, read 2026-11).
bool by_operators(const Software& software) { return software.deterministic && software.fused(); }

/// Its operators in fp32. A chunk's triangle goes row by row: copies of the row and of all above
/// it, their product, its sum, the row again and where it goes. Then chunks go one by one: the
/// scores with their decays and mask, what the state gives for keys and queries, what is new of the
/// values, and the state after it. Backward is taken to launch two for each (estimate, 2026).
void delta_by_operators(PieceWriter& w, bool backward) {
  const DeltaShape d = delta_of(w.in());
  const std::string name =
      std::string("layer.delta.operator.") + (backward ? "backward" : "forward");
  const std::int64_t tokens = w.sizes().tokens;
  const auto pass = [&](std::int64_t bytes) {
    for (int i = 0; i < (backward ? 2 : 1); ++i) w.pass_fp32(name, pointwise, bytes);
  };
  const std::int64_t cell = 4 * ceil_div(tokens, delta_chunk) * d.value_heads;  // one of each chunk
  for (std::int64_t i = 1; i < delta_chunk; ++i) {
    const std::int64_t row = cell * i, above = row * i;
    for (const std::int64_t bytes :
         {2 * row, 2 * above, 2 * above + row, above + row, 3 * row, 2 * row})
      pass(bytes);
  }
  const std::int64_t chunks = ceil_div(w.in().batch.sequence, delta_chunk);
  const std::int64_t part = 4 * ceil_div(tokens, chunks);  // fp32 of one chunk's tokens
  const std::int64_t keys = part * d.key_dim * d.value_heads, values = part * d.values(),
                     square = part * delta_chunk * d.value_heads,
                     state = 4 * d.key_dim * d.values() * w.in().batch.micro_batch;
  for (std::int64_t i = 0; i < chunks; ++i)
    for (const std::int64_t bytes :
         {2 * keys + square, 3 * square, 2 * square, keys + state + values, 3 * values, 2 * keys,
          keys + state + values, square + 2 * values, 3 * values, 2 * values, 2 * state, 2 * keys,
          keys + values + state, 3 * state})
      pass(bytes);
}

void recur_delta(PieceWriter& w, bool backward) {
  if (by_operators(w.in().software)) return delta_by_operators(w, backward);
  w.kernel(delta_core(w, backward));
}

/// Keys and queries of unit length; decay and step of each head, in fp32 and 16 bits; keys and
/// queries repeated for each value head (transformers modeling_qwen3_next.py and Megatron core,
/// read 2026-08).
void prepare_delta(PieceWriter& w, const std::string& pass) {
  const DeltaShape d = delta_of(w.in());
  const std::int64_t t = w.sizes().tokens, e = w.sizes().element;
  const bool backward = pass == "backward";
  w.pass("layer.delta.unit." + pass, backward ? norm_backward : norm,
         (backward ? 6 : 4) * e * t * d.keys());
  w.pass("layer.delta.steps." + pass, pointwise, (3 * e + 4) * t * d.value_heads);
  if (d.value_heads > d.key_heads)
    w.pass("layer.delta.repeat." + pass, copy,
           2 * e * t * d.key_dim * (d.key_heads + d.value_heads));
}

// ---- state spaces

Kernel state_space_core(const PieceWriter& w, bool backward) {
  const StateSpaceShape s = state_space_of(w.in());
  const auto forward = static_cast<double>(state_space_flops(s));
  Kernel kernel =
      recurrence(w, std::string("layer.ssd.core.") + (backward ? "backward" : "forward"),
                 backward ? state_space_backward : state_space_forward, s.heads, s.groups,
                 backward ? forward * state_space_backward_flops : forward);
  kernel.head_dim = s.state;
  kernel.value_dim = s.head_dim;
  const std::int64_t row = 2 * s.inner() + 2 * s.groups * s.state + s.heads;
  kernel.bytes = Bytes((backward ? 3 : 1) * w.sizes().element * w.sizes().tokens * row);
  return kernel;
}

// ---- index

bool has_own_index(const PieceWriter& w) {
  return w.in().shape.index.heads > 0 && w.kind().mixer == Mixer::full;
}

Linears index_inputs(const PieceWriter& w) {
  const IndexShape& i = w.in().shape.index;
  const auto of = [&](const char* name, std::int64_t out) {
    return Linear{.name = std::string("layer.index.") + name,
                  .tensor = std::string("index.") + name,
                  .in = w.sizes().hidden,
                  .out = out,
                  .rows = w.sizes().local_tokens};
  };
  return {of("k", i.dim), of("weights", i.heads)};
}
Linear index_queries(const PieceWriter& w) {
  const IndexShape& i = w.in().shape.index;
  return {.name = "layer.index.q",
          .tensor = "index.q",
          .in = w.in().shape.latent.q_rank,
          .out = i.heads * i.dim,
          .rows = w.sizes().local_tokens};
}
/// Every row against the keys before it, on average half of them.
std::int64_t keys_scored(const PieceWriter& w) {
  return std::max<std::int64_t>(1, w.in().batch.sequence / 2);
}

}  // namespace

void write_delta_forward(PieceWriter& w) {
  const DeltaShape d = delta_of(w.in());
  write_column_forward(w, "layer.delta.in", {in_projection(w, "delta", d.projected())});
  exchange_mixer(w, "forward.to_heads", d.projected());
  convolve(w, "delta", d.convolved());
  prepare_delta(w, "forward");
  w.module();
  recur_delta(w, false);
  gated_norm(w, "delta", d.values());
  exchange_mixer(w, "forward.to_tokens", d.values());
  write_row_forward(w, out_projection(w, "delta", d.values()));
}

void write_delta_backward(PieceWriter& w, const ParameterTensors& unit) {
  const DeltaShape d = delta_of(w.in());
  write_row_backward(w, unit, out_projection(w, "delta", d.values()));
  exchange_mixer(w, "backward.to_heads", d.values());
  gated_norm_backward(w, "delta", d.values());
  w.gradient(unit, "delta.norm");
  recur_delta(w, true);
  prepare_delta(w, "backward");
  w.gradient(unit, "delta.decay");
  convolve_backward(w, "delta", d.convolved());
  w.gradient(unit, "delta.conv");
  exchange_mixer(w, "backward.to_tokens", d.projected());
  write_column_backward(w, "layer.delta.in", unit, {in_projection(w, "delta", d.projected())});
}

void write_state_space_forward(PieceWriter& w) {
  const StateSpaceShape s = state_space_of(w.in());
  write_column_forward(w, "layer.ssd.in", {in_projection(w, "ssd", s.projected())});
  exchange_mixer(w, "forward.to_heads", s.projected());
  convolve(w, "ssd", s.convolved());
  w.module();
  w.kernel(state_space_core(w, false));
  gated_norm(w, "ssd", s.inner());
  exchange_mixer(w, "forward.to_tokens", s.inner());
  write_row_forward(w, out_projection(w, "ssd", s.inner()));
}

/// Convolution and states are made again (mamba_split_conv1d_scan_combined(), Megatron's
/// use_mamba_mem_eff_path, read 2026-08).
void write_state_space_backward(PieceWriter& w, const ParameterTensors& unit) {
  const StateSpaceShape s = state_space_of(w.in());
  write_row_backward(w, unit, out_projection(w, "ssd", s.inner()));
  exchange_mixer(w, "backward.to_heads", s.inner());
  gated_norm_backward(w, "ssd", s.inner());
  w.gradient(unit, "ssd.norm");
  convolve(w, "ssd", s.convolved());
  w.kernel(state_space_core(w, true));
  w.gradient(unit, "ssd.heads");
  convolve_backward(w, "ssd", s.convolved());
  w.gradient(unit, "ssd.conv");
  exchange_mixer(w, "backward.to_tokens", s.projected());
  write_column_backward(w, "layer.ssd.in", unit, {in_projection(w, "ssd", s.projected())});
}

/// A norm of the key, scores in 16 bits, the best of each row out of scores in fp32.
void write_index_forward(PieceWriter& w) {
  if (!has_own_index(w)) return;
  const IndexShape& i = w.in().shape.index;
  const std::int64_t t = w.sizes().tokens, keys = keys_scored(w);
  write_whole_forward(w, index_inputs(w));
  write_whole_forward(w, {index_queries(w)});
  write_inner_norm_forward(w, "layer.index.norm", {w.sizes().local_tokens, i.dim});
  w.gemm("layer.index.scores.forward", t, keys, i.heads * i.dim);
  w.pass("layer.index.top", reduction, 4 * t * keys);
}

/// The gradient of a loss that teaches the index what attention looks at, over the chosen keys.
void write_index_backward(PieceWriter& w, const ParameterTensors& unit) {
  if (!has_own_index(w)) return;
  const IndexShape& i = w.in().shape.index;
  const std::int64_t t = w.sizes().tokens, keys = std::min(i.top, keys_scored(w));
  if (!w.frozen()) {
    w.gemm("layer.index.scores.dgrad", t, i.heads * i.dim, keys);
    w.gemm("layer.index.keys.dgrad", keys, i.heads * i.dim, t);
  }
  write_inner_norm_backward(w, "layer.index.norm", unit, "index.norm",
                            {w.sizes().local_tokens, i.dim});
  write_whole_backward(w, "layer.index.q", unit, {index_queries(w)});
  write_whole_backward(w, "layer.index.k", unit, index_inputs(w));
}

namespace {

/// What operators of torch keep in fp32. Of the width of keys: q, k, k times beta and the same
/// decayed, what it became, and q and k decayed in each chunk; of values: v, v times beta and what
/// each chunk adds. Of each chunk's square: its decays twice, products of keys, of queries, and
/// both times the decays. A triangle is solved row by row, each beside a copy of all rows above it.
/// The state before each chunk.
std::vector<std::int64_t> kept_by_delta_operators(const DeltaShape& d, std::int64_t tokens) {
  constexpr std::int64_t c = delta_chunk;
  const std::int64_t row = 4 * tokens;
  std::vector<std::int64_t> out(7, row * d.key_dim * d.value_heads);
  out.insert(out.end(), 3, row * d.values());
  out.insert(out.end(), 6, row * c * d.value_heads);
  for (std::int64_t i = 1; i < c; ++i)
    out.push_back(ceil_div(row * d.value_heads * i * (i + 1), c));
  out.push_back(row * d.key_dim * d.values() / c);
  return out;
}

}  // namespace

/// The layer's input; before and after the convolution; the inverse of each chunk's triangle, the
/// decays, what the recurrence leaves, and what the last product reads.
std::vector<std::int64_t> kept_by_delta(const StepInputs& in) {
  const DeltaShape d = delta_of(in);
  const Sizes s(in);
  if (by_operators(in.software)) {
    const std::int64_t each = s.element * s.tokens;
    std::vector<std::int64_t> out = kept_by_delta_operators(d, s.tokens);
    for (const std::int64_t bytes :
         {s.hidden_bytes(), each * d.convolved(), each * 2 * d.key_dim * d.value_heads,
          each * d.values(), each * d.values(), each * d.values()})
      out.push_back(bytes);
    return out;
  }
  const std::int64_t row = s.element * s.tokens, keys = 2 * d.key_dim * d.value_heads;
  return {s.hidden_bytes(),
          row * d.convolved(),
          row * (keys + d.values()),
          row * delta_chunk * d.value_heads,
          s.tokens * d.value_heads * (4 + s.element),
          row * d.values(),  // the gate
          row * d.values(),
          row * d.values()};
}

/// The layer's input, the in-projection's output, what the recurrence leaves, and what the last
/// product reads.
std::vector<std::int64_t> kept_by_state_space(const StepInputs& in) {
  const StateSpaceShape x = state_space_of(in);
  const Sizes s(in);
  const std::int64_t row = s.element * s.tokens;
  return {s.hidden_bytes(), row * x.projected(), row * x.inner(), row * x.inner()};
}

/// Queries, key and weights, and which keys were chosen, 4 bytes each.
std::vector<std::int64_t> kept_by_index(const StepInputs& in) {
  const IndexShape& i = in.shape.index;
  const Sizes s(in);
  const std::int64_t row = s.element * s.tokens;
  return {row * i.heads * i.dim, row * i.dim, row * i.heads,
          4 * s.tokens * std::min(i.top, in.batch.sequence)};
}

std::int64_t states_bytes(const StepInputs& in, Mixer mixer) {
  const DeltaShape d = delta_of(in);
  const StateSpaceShape x = state_space_of(in);
  const std::int64_t tokens = Sizes(in).tokens;
  std::int64_t bytes = 0;
  if (mixer == Mixer::delta)
    bytes += 4 * d.key_dim * d.values() * std::max<std::int64_t>(1, tokens / delta_chunk);
  if (has_state_space(mixer))
    bytes += 4 * x.state * x.inner() * std::max<std::int64_t>(1, tokens / state_space_chunk);
  return bytes;
}

}  // namespace stepcast::workloads
