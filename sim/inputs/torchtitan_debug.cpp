// torchtitan's small models for trying things out: each is like a model of the catalogue, of fewer
// and narrower layers (models/*/__init__.py of pytorch/torchtitan at b5bcd76, 2026-08).
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "sim/inputs/formats.hpp"

namespace stepcast::sim {
namespace {

struct Size {
  std::string_view key;
  std::int64_t value;
};

struct DebugModel {
  std::string_view module, flavor, like;
  Size sizes[10];  // what differs; an empty key: no more
};

constexpr DebugModel debug_models[] = {
    {"llama3",
     "debugmodel",
     "llama3-8b",
     {{"layers", 6},
      {"hidden", 256},
      {"heads", 16},
      {"kv_heads", 16},
      {"head_dim", 16},
      {"ffn_hidden", 768},
      {"vocab", 2048}}},
    {"qwen3", "debugmodel", "Qwen/Qwen3-0.6B", {{"layers", 8}, {"hidden", 256}, {"vocab", 2048}}},
    {"qwen3",
     "debugmodel_non_fused_qkv",
     "Qwen/Qwen3-0.6B",
     {{"layers", 8}, {"hidden", 256}, {"vocab", 2048}}},
    {"qwen3",
     "debugmodel_moe",
     "qwen3-30b-a3b",
     {{"layers", 8},
      {"hidden", 256},
      {"heads", 16},
      {"kv_heads", 8},
      {"vocab", 2048},
      {"experts", 64},
      {"experts_per_token", 8},
      {"expert_ffn", 768}}},
    {"deepseek_v3",
     "debugmodel",
     "deepseek-v2-lite",
     {{"layers", 6},
      {"hidden", 256},
      {"heads", 16},
      {"ffn_hidden", 1024},
      {"vocab", 2048},
      {"experts", 8},
      {"experts_per_token", 3},
      {"expert_ffn", 256},
      {"shared_expert_ffn", 512}}},
    {"gpt_oss",
     "debugmodel",
     "gpt-oss-20b",
     {{"layers", 4}, {"hidden", 256}, {"vocab", 2048}, {"experts", 8}}},
    {"qwen3_5",
     "debugmodel",
     "Qwen/Qwen3.5-0.8B",
     {{"layers", 8},
      {"hidden", 256},
      {"heads", 4},
      {"head_dim", 64},
      {"ffn_hidden", 512},
      {"delta_key_heads", 2},
      {"delta_key_dim", 64},
      {"delta_value_heads", 4},
      {"delta_value_dim", 64}}},
};

bool is_of_shape(std::string_view key) {
  constexpr std::string_view others[] = {"name",    "source",  "published", "explained",
                                         "aliases", "text_of", "catalogue", "mtp_layers"};
  return std::ranges::find(others, key) == std::end(others);
}

}  // namespace

bool set_debug_model(Facts& facts, std::string_view module, std::string_view flavor,
                     const Catalogue& catalogue, const std::string& source) {
  const auto found = std::ranges::find_if(debug_models, [&](const DebugModel& one) {
    return one.module == module && one.flavor == flavor;
  });
  if (found == std::end(debug_models)) return false;
  const TomlValue& like = catalogue.entry("models", std::string(found->like), source);
  for (const TomlEntry& part : *like.table())
    if (is_of_shape(part.key)) facts.set("model." + part.key, part.value, source);
  if (like.find("ffn_hidden") == nullptr)
    facts.set("model.ffn_hidden", {std::int64_t{0}, ""}, source);
  for (const Size& size : found->sizes)
    if (!size.key.empty()) facts.set("model." + std::string(size.key), {size.value, ""}, source);
  return true;
}

}  // namespace stepcast::sim
