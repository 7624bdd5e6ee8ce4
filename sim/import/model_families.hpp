// What transformers' configuration_*.py of a family means (huggingface/transformers, read 2026-11,
// those of experts and latent attention recalled), and what of its code our layer is only near to.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sim/import/config_reader.hpp"

namespace stepcast::sim {

struct ModelFamily {
  std::string_view type;  // model_type
  const char* norm = "rmsnorm";
  bool gated = true;    // two products and an activation between them, then the third
  bool biases = false;  // of all products
  bool qkv_biases = false;
  bool qk_norm = false;
  bool rope = true;
  bool tied = false;                                         // tie_word_embeddings, unless stated
  bool windows = false;                                      // sliding_window is of all layers
  void (*read)(const ConfigReader&, ModelEntry&) = nullptr;  // sizes that the others have not
  std::vector<const char*> notes{};
};

std::span<const ModelFamily> model_families();

/// model_type and what its layers are that no layer of ours is near to.
struct UnlikeFamily {
  std::string_view type;
  const char* what;
};
std::span<const UnlikeFamily> unlike_families();

inline constexpr const char* side_by_side =
    "attention and MLP stand side by side behind one norm: they are counted one after the other";

}  // namespace stepcast::sim
