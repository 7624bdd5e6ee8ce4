// The layers of a config.json as a list, whichever of the many keys of its kind says them.
#pragma once

#include "sim/import/config_reader.hpp"
#include "workloads/plan/layers.hpp"

namespace stepcast::sim {

/// How a family's configuration says windows and experts where the file does not.
struct LayerHints {
  bool windows = false;         // sliding_window is of all layers
  bool windows_asked = false;   // only where use_sliding_window says so (Qwen)
  std::int64_t full_every = 0;  // every n-th layer attends to all, the others have the window
  bool both = false;            // attention and state space side by side in every layer
  bool experts = false;         // the model has experts, in all layers unless keys say otherwise
};

/// Writes `layers`, and what layers have what: window, window_every, dense_layers, expert_every
/// where these can say it, else layer_pattern.
void read_layers(const ConfigReader&, const LayerHints&, ModelEntry&);

}  // namespace stepcast::sim
