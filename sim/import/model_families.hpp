// What transformers' configuration_*.py of a family means (huggingface/transformers, read 2026-11,
// those of experts and latent attention recalled; families since 2025 after the configurations
// themselves and Megatron-Bridge 067f987, read 2026-08), and what of its code our layer is only
// near to.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sim/import/config_reader.hpp"
#include "sim/import/model_layers.hpp"

namespace stepcast::sim {

/// How a family normalises queries and keys.
enum class HeadNorms : std::uint8_t { none, each, whole };

struct ModelFamily {
  std::string_view type;  // model_type, of the whole or of its text_config
  const char* norm = "rmsnorm";
  const char* activation = "swiglu";
  const char* norm_place = nullptr;  // null: before
  bool biases = false;               // of all products
  bool qkv_biases = false;
  HeadNorms head_norms = HeadNorms::none;
  bool rope = true;
  bool tied = false;           // tie_word_embeddings, unless stated
  const char* gate = nullptr;  // of attention's output
  LayerHints layers{};
  bool expert_is_ffn = false;  // experts are as wide as intermediate_size
  const char* router = nullptr;
  bool router_bias = false;
  void (*read)(const ConfigReader&, ModelEntry&) = nullptr;  // sizes that the others have not
  std::vector<const char*> notes{};
};

std::span<const ModelFamily> model_families();

/// model_type, what its layers are that no layer of ours is near to, and the nearest that is.
struct UnlikeFamily {
  std::string_view type;
  const char* what;
  const char* nearest;
};
std::span<const UnlikeFamily> unlike_families();

inline constexpr const char* side_by_side =
    "attention and MLP stand side by side behind one norm: they are counted one after the other";

}  // namespace stepcast::sim
