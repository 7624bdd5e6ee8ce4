#include "workloads/pieces/latent_piece.hpp"

#include "workloads/pieces/linear_piece.hpp"
#include "workloads/pieces/norm_piece.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

const LatentShape& latent_of(const PieceWriter& w) { return w.in().shape.latent; }
bool q_has_rank(const PieceWriter& w) { return latent_of(w).q_rank > 0; }

/// On a rank's own tokens.
Linear down(const PieceWriter& w, const std::string& tensor, std::int64_t width) {
  return {.name = "layer." + tensor,
          .tensor = tensor,
          .in = w.sizes().hidden,
          .out = width,
          .low = w.low(),
          .rows = w.sizes().local_tokens};
}
Linears downs(const PieceWriter& w) {
  Linears out;
  if (q_has_rank(w)) out.push_back(down(w, "attention.q_down", latent_of(w).q_rank));
  out.push_back(down(w, "attention.kv_down", latent_of(w).kv_rank + latent_of(w).rope));
  return out;
}

Linear up(const PieceWriter& w, const std::string& tensor, std::int64_t in, std::int64_t out) {
  return {.name = "layer." + tensor, .tensor = tensor, .in = in, .out = out, .low = w.low()};
}
Linear q_up(const PieceWriter& w) {
  return up(w, "attention.q_up", latent_of(w).q_rank, w.sizes().query);
}
Linear q_straight(const PieceWriter& w) {
  return up(w, "attention.q", w.sizes().hidden, w.sizes().query);
}
Linear kv_up(const PieceWriter& w) {
  return up(w, "attention.kv_up", latent_of(w).kv_rank,
            w.sizes().heads * latent_of(w).nope + w.sizes().value);
}

NormRows ranks_of(const PieceWriter& w, std::int64_t width) {
  return {w.sizes().local_tokens, width};
}
std::int64_t rotated_key_bytes(const PieceWriter& w) {
  return w.sizes().element * w.sizes().tokens * latent_of(w).rope;
}
void exchange_rotated_key(PieceWriter& w, const std::string& pass, CollectiveKind kind) {
  w.collective("layer.attention.k_rope." + pass, kind, w.in().precision.compute,
               rotated_key_bytes(w));
}

}  // namespace

void write_latent_up_forward(PieceWriter& w) {
  if (q_has_rank(w)) {
    write_inner_norm_forward(w, "layer.attention.q_norm", ranks_of(w, latent_of(w).q_rank));
    write_column_forward(w, "layer.attention.q_up", {q_up(w)});
  } else {
    write_column_forward(w, "layer.attention.q", {q_straight(w)});
  }
  write_inner_norm_forward(w, "layer.attention.kv_norm", ranks_of(w, latent_of(w).kv_rank));
  write_column_forward(w, "layer.attention.kv_up", {kv_up(w)});
  if (w.sequence_parallel()) exchange_rotated_key(w, "forward", CollectiveKind::all_gather);
  write_latent_rope(w, ".forward");
}

bool makes_latent_up_again(const StepInputs& in) {
  return in.shape.latent.kv_rank > 0 && in.plan.recompute != Recompute::full &&
         in.plan.recompute_modules.has(LayerModule::latent_up);
}

void write_latent_projections_forward(PieceWriter& w) {
  write_whole_forward(w, downs(w));
  write_latent_up_forward(w);
}

void write_latent_projections_backward(PieceWriter& w, const ParameterTensors& unit) {
  write_latent_rope(w, ".backward");
  // Every rank has the gradient of its heads.
  if (w.split())
    exchange_rotated_key(
        w, "backward",
        w.sequence_parallel() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce);
  write_column_backward(w, "layer.attention.kv_up", unit, {kv_up(w)});
  write_inner_norm_backward(w, "layer.attention.kv_norm", unit, "attention.kv_norm",
                            ranks_of(w, latent_of(w).kv_rank));
  const std::int64_t joined = latent_of(w).kv_rank + latent_of(w).rope;
  w.pass("layer.attention.kv_down.concatenate", copy,
         2 * w.sizes().element * w.sizes().local_tokens * joined);
  if (q_has_rank(w)) {
    write_column_backward(w, "layer.attention.q_up", unit, {q_up(w)});
    write_inner_norm_backward(w, "layer.attention.q_norm", unit, "attention.q_norm",
                              ranks_of(w, latent_of(w).q_rank));
  } else {
    write_column_backward(w, "layer.attention.q", unit, {q_straight(w)});
  }
  write_whole_backward(w, "layer.attention.down", unit, downs(w));
  if (!q_has_rank(w) && !w.own())  // gradients of the same input
    w.pass("layer.attention.down.gradient_sum", pointwise, 3 * w.sizes().local_bytes());
}

/// One kernel rotates q's part in place, one reads the projected k and v and the rotated key, and
/// writes k and v (Megatron's fused_mla_yarn_rope_apply.py). Otherwise parts are rotated as in
/// write_rope() and q and k put together out of theirs: read and write all of q; read k's own and
/// the common part, write k.
void write_latent_rope(PieceWriter& w, const std::string& suffix) {
  const LatentShape& l = latent_of(w);
  const std::int64_t e = w.sizes().element, t = w.sizes().tokens, heads = w.sizes().heads;
  const std::string prefix = "layer.attention.rope.";
  if (w.fused()) {
    w.pass(prefix + "q" + suffix, rope, 2 * e * t * heads * l.rope);
    return w.pass(prefix + "kv" + suffix, rope,
                  e * t * (heads * (2 * l.nope + l.rope + 2 * l.value) + l.rope));
  }
  for (const auto& [name, width] : {std::pair{"q", heads * l.rope}, {"k", l.rope}}) {
    if (w.eager()) {
      w.pass(prefix + name + suffix + ".upcast", rope, (e + 4) * t * width);
      w.pass_fp32(prefix + name + suffix + ".multiply", rope, 8 * t * width);
      w.pass(prefix + name + suffix + ".cast", rope, (4 + e) * t * width);
    } else {
      w.pass(prefix + name + suffix, rope, 2 * e * t * width);
    }
  }
  w.pass(prefix + "q.concatenate" + suffix, copy, 2 * e * t * w.sizes().query);
  w.pass(prefix + "k.concatenate" + suffix, copy, e * t * (heads * (2 * l.nope + l.rope) + l.rope));
}

}  // namespace stepcast::workloads
