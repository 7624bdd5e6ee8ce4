#include "workloads/plan/layer_shape.hpp"

#include <algorithm>

namespace stepcast::workloads {

LayerForm layer_form(const TransformerShape& s, std::int64_t layer) {
  if (!s.pattern.empty()) return s.pattern[static_cast<std::size_t>(layer % std::ssize(s.pattern))];
  const ExpertShape& e = s.experts;
  const bool experts =
      e.count > 0 && layer >= e.dense_layers && (layer - e.dense_layers) % e.every == e.every - 1;
  const bool window = s.window > 0 && layer % s.window_every == 0;
  return {window ? Mixer::window : Mixer::full, experts ? Mlp::experts : Mlp::dense};
}

LayerForm mtp_form(const TransformerShape& s) {
  const LayerForm last = layer_form(s, s.layers - 1);
  if (s.pattern.empty()) return last;
  LayerForm out{Mixer::full, last.mlp, last.ffn};
  for (std::int64_t layer = s.layers - 1; layer >= 0 && out.mlp == Mlp::none; --layer) {
    out.mlp = layer_form(s, layer).mlp;
    out.ffn = layer_form(s, layer).ffn;
  }
  return out;
}

bool has_own_sizes(const TransformerShape& s, const LayerForm& form) {
  const bool window =
      s.window_heads > 0 || s.window_kv_heads > 0 || s.window_head_dim > 0 || s.values_are_keys;
  return form.ffn > 0 || (form.mixer == Mixer::window && window);
}

TransformerShape sizes_of(const TransformerShape& s, const LayerForm& form) {
  TransformerShape out = s;
  const auto take = [](std::int64_t& size, std::int64_t own) {
    if (own > 0) size = own;
  };
  take(out.ffn_hidden, form.ffn);
  if (form.mixer != Mixer::window) return out;
  take(out.heads, s.window_heads);
  take(out.kv_heads, s.window_kv_heads);
  take(out.head_dim, s.window_head_dim);
  out.values_are_keys = false;
  return out;
}

std::int64_t delta_flops(const DeltaShape& d) {
  return 6 * delta_chunk * d.key_dim + 4 * delta_chunk * d.value_dim + 6 * d.key_dim * d.value_dim;
}

std::int64_t state_space_flops(const StateSpaceShape& s) {
  const std::int64_t heads_of_group = std::max<std::int64_t>(1, s.heads / s.groups);
  return 2 * state_space_chunk * s.head_dim + 4 * s.state * s.head_dim +
         2 * state_space_chunk * s.state / heads_of_group;
}

DeltaShape delta_of_rank(const DeltaShape& whole, std::int64_t tensor) {
  DeltaShape out = whole;
  out.key_heads /= tensor;
  out.value_heads /= tensor;
  return out;
}

StateSpaceShape state_space_of_rank(const StateSpaceShape& whole, std::int64_t tensor) {
  StateSpaceShape out = whole;
  out.heads /= tensor;
  out.groups = std::max<std::int64_t>(1, whole.groups / tensor);
  return out;
}

}  // namespace stepcast::workloads
