// Models that Megatron-Bridge has a recipe for, and what its recipe for pre-training says where
// nothing lies over it: src/megatron/bridge/recipes at the tags v0.2.0 to v0.5.0 of
// NVIDIA-NeMo/Megatron-Bridge; the values are those of v0.5.0 (2026-06).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stepcast::sim {

struct BridgeRecipe {
  std::string_view model;   // ours, or an id
  std::string_view stem;    // its function is STEM_pretrain_config
  std::string_view family;  // the package below megatron.bridge.recipes that exports it
  int since = 0;            // minor of Megatron-Bridge's version 0
  std::int64_t sequence = 0, global = 0, micro = 0;
  std::int64_t tensor = 1, pipeline = 1, virtual_stages = 1, context = 1, expert = 1;
  bool sequence_parallel = false;
  std::string_view recompute;  // "": none
};

std::span<const BridgeRecipe> bridge_recipes();
/// Null where it has none.
const BridgeRecipe* bridge_recipe_of(std::string_view model);
/// Of a function's name, of any release: "llama3_8b_sft_config". Null: no recipe of that model.
const BridgeRecipe* bridge_recipe_named(std::string_view function);
/// What stands before "_pretrain", "_sft" and their like: "llama3_8b".
std::string_view recipe_stem(std::string_view function);
std::string pretrain_function(const BridgeRecipe& recipe);

/// Minor of Megatron-Bridge's version 0 in a container of NeMo, "26.04" (its docs/releases/
/// software-versions.md); an older NeMo has none: 0.
int bridge_release(std::string_view nemo_version);

}  // namespace stepcast::sim
