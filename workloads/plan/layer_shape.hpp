// What each layer of a model is, and the sizes that it has: the model's, unless the layer has its
// own. Who writes or counts a layer sees a model whose layers are all like it.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>

#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

/// Of the layer with that number, counted from 0: as the pattern says, else by window_every,
/// dense_layers and expert_every.
LayerForm layer_form(const TransformerShape&, std::int64_t layer);
/// Of the one layer in a module for further tokens: the last layer's; with a pattern attention to
/// all keys and the last MLP (Qwen3-Next, Nemotron-3: "*E").
LayerForm mtp_form(const TransformerShape&);
/// Whether a layer of the model is so; `has` takes a LayerForm.
template <class Has>
bool any_layer(const TransformerShape& s, Has has) {
  const std::int64_t distinct =
      s.pattern.empty() ? s.layers : std::min<std::int64_t>(s.layers, std::ssize(s.pattern));
  for (std::int64_t layer = 0; layer < distinct; ++layer)
    if (has(layer_form(s, layer))) return true;
  return false;
}

bool has_own_sizes(const TransformerShape&, const LayerForm&);
TransformerShape sizes_of(const TransformerShape&, const LayerForm&);
/// `f` of the shape with the layer's sizes; no copy is made where they are the model's.
template <class F>
auto with_sizes_of(const TransformerShape& s, const LayerForm& form, F&& f) {
  if (!has_own_sizes(s, form)) return std::forward<F>(f)(s);
  const TransformerShape own = sizes_of(s, form);
  return std::forward<F>(f)(own);
}

/// FLOPs of a token and head, forward, of the chunked kernels. Delta rule in chunks of C: products
/// among keys, queries and values of a chunk and those with the state, 6 C d_k + 4 C d_v + 6 d_k
/// d_v. State space: scores among a group's B and C, those times x, what goes into the state and
/// comes out of it, 2 C d + 4 N d and, of a group, 2 C N.
std::int64_t delta_flops(const DeltaShape&);
std::int64_t state_space_flops(const StateSpaceShape&);
/// Backward over forward: both make again what forward has within chunks (derived; nobody has
/// counted them).
inline constexpr double delta_backward_flops = 2.5;
inline constexpr double state_space_backward_flops = 3.0;
/// Tokens of a chunk: flash-linear-attention at bc3b101, Megatron core's mamba_chunk_size (read
/// 2026-08).
inline constexpr std::int64_t delta_chunk = 64;
inline constexpr std::int64_t state_space_chunk = 128;

/// A tensor rank's part. With more ranks than groups of a state space each keeps one group.
DeltaShape delta_of_rank(const DeltaShape&, std::int64_t tensor);
StateSpaceShape state_space_of_rank(const StateSpaceShape&, std::int64_t tensor);

}  // namespace stepcast::workloads
