#include "sim/launch/bridge_registry.hpp"

#include <algorithm>

#include "sim/import/model_index.hpp"

namespace stepcast::sim {
namespace {

constexpr BridgeRecipe recipes[] = {
    {"llama2-7b", "llama2_7b", "llama", 2, 4096, 512, 1, 2, 1, 1, 1, 1, false, ""},
    {"llama3-8b", "llama3_8b", "llama", 2, 8192, 512, 1, 1, 1, 1, 2, 1, false, ""},
    {"llama3-70b", "llama3_70b", "llama", 2, 8192, 512, 1, 4, 4, 5, 2, 1, true, ""},
    {"meta-llama/Meta-Llama-3.1-8B", "llama31_8b", "llama", 2, 8192, 512, 1, 1, 1, 1, 2, 1, false,
     ""},
    {"meta-llama/Meta-Llama-3.1-70B", "llama31_70b", "llama", 2, 131072, 512, 1, 4, 4, 5, 2, 1,
     true, ""},
    {"meta-llama/Meta-Llama-3.1-405B", "llama31_405b", "llama", 2, 131072, 512, 1, 8, 8, 2, 4, 1,
     true, ""},
    {"meta-llama/Llama-3.2-1B", "llama32_1b", "llama", 2, 8192, 512, 1, 1, 1, 1, 1, 1, false, ""},
    {"meta-llama/Llama-3.2-3B", "llama32_3b", "llama", 2, 8192, 512, 1, 1, 1, 1, 1, 1, false, ""},
    {"Qwen/Qwen2.5-0.5B", "qwen25_500m", "qwen", 2, 4096, 32, 2, 1, 1, 1, 1, 1, false, ""},
    {"Qwen/Qwen2.5-1.5B", "qwen25_1p5b", "qwen", 2, 4096, 32, 2, 1, 1, 1, 1, 1, false, ""},
    {"Qwen/Qwen2.5-7B", "qwen25_7b", "qwen", 2, 4096, 32, 2, 2, 1, 1, 1, 1, false, ""},
    {"Qwen/Qwen2.5-14B", "qwen25_14b", "qwen", 2, 4096, 32, 2, 4, 1, 1, 1, 1, false, ""},
    {"Qwen/Qwen2.5-32B", "qwen25_32b", "qwen", 2, 4096, 32, 2, 8, 2, 1, 1, 1, false, ""},
    {"Qwen/Qwen2.5-72B", "qwen25_72b", "qwen", 2, 4096, 32, 2, 8, 4, 1, 1, 1, false, ""},
    {"Qwen/Qwen3-0.6B", "qwen3_600m", "qwen", 2, 4096, 32, 2, 1, 1, 1, 1, 1, false, ""},
    {"Qwen/Qwen3-1.7B", "qwen3_1p7b", "qwen", 2, 4096, 32, 2, 1, 1, 1, 1, 1, false, ""},
    {"Qwen/Qwen3-4B", "qwen3_4b", "qwen", 2, 4096, 32, 2, 2, 1, 1, 1, 1, false, ""},
    {"Qwen/Qwen3-8B", "qwen3_8b", "qwen", 2, 4096, 32, 2, 4, 1, 1, 1, 1, false, ""},
    {"Qwen/Qwen3-14B", "qwen3_14b", "qwen", 2, 4096, 32, 2, 8, 1, 1, 1, 1, false, ""},
    {"Qwen/Qwen3-32B", "qwen3_32b", "qwen", 2, 4096, 32, 2, 8, 2, 1, 1, 1, false, "full"},
    {"Qwen/Qwen3-30B-A3B", "qwen3_30b_a3b", "qwen", 2, 4096, 32, 2, 4, 2, 1, 1, 4, true, "full"},
    {"Qwen/Qwen3-235B-A22B", "qwen3_235b_a22b", "qwen", 2, 4096, 32, 1, 4, 16, 1, 2, 8, true, ""},
    {"Qwen/Qwen3-Next-80B-A3B-Instruct", "qwen3_next_80b_a3b", "qwen", 2, 4096, 32, 2, 1, 4, 1, 1,
     8, false, "selective"},
    {"google/gemma-2-2b", "gemma2_2b", "gemma", 3, 4096, 32, 2, 2, 1, 1, 1, 1, false, ""},
    {"google/gemma-2-9b", "gemma2_9b", "gemma", 3, 4096, 32, 2, 8, 1, 1, 1, 1, false, ""},
    {"google/gemma-2-27b", "gemma2_27b", "gemma", 3, 4096, 32, 2, 8, 2, 1, 1, 1, false, ""},
    {"google/gemma-3-1b-pt", "gemma3_1b", "gemma", 2, 32768, 512, 1, 1, 1, 1, 1, 1, false, ""},
    {"zai-org/GLM-4.5-Air", "glm45_air_106b", "glm", 2, 4096, 2048, 1, 1, 4, 1, 1, 8, true,
     "selective"},
    {"zai-org/GLM-4.5", "glm45_355b", "glm", 2, 4096, 2048, 1, 2, 8, 1, 1, 16, true, "selective"},
    {"openai/gpt-oss-20b", "gpt_oss_20b", "gpt_oss", 2, 4096, 512, 1, 2, 4, 1, 1, 4, true, ""},
    {"openai/gpt-oss-120b", "gpt_oss_120b", "gpt_oss", 2, 4096, 512, 1, 2, 4, 1, 1, 16, true, ""},
    {"moonshotai/Kimi-K2-Instruct", "kimi_k2", "kimi", 3, 4096, 4096, 1, 2, 16, 1, 1, 32, true,
     "selective"},
    {"moonshotai/Moonlight-16B-A3B", "moonlight_16b", "moonlight", 2, 4096, 2048, 1, 2, 1, 1, 1, 8,
     true, "selective"},
    {"deepseek-ai/DeepSeek-V2-Lite", "deepseek_v2_lite", "deepseek", 2, 4096, 512, 1, 1, 1, 1, 1, 8,
     false, "full"},
    {"deepseek-ai/DeepSeek-V2", "deepseek_v2", "deepseek", 2, 4096, 512, 1, 1, 4, 1, 1, 32, false,
     "full"},
    {"deepseek-ai/DeepSeek-V3", "deepseek_v3", "deepseek", 2, 4096, 4096, 1, 2, 16, 1, 1, 64, true,
     ""},
    {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron_3_nano", "nemotronh", 3, 8192, 3072, 2,
     4, 1, 1, 1, 8, true, ""},
    {"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", "nemotron_3_super", "nemotronh", 4, 8192,
     3072, 1, 4, 1, 1, 1, 8, true, ""},
    {"allenai/OLMoE-1B-7B-0924", "olmoe_7b", "olmoe", 2, 4096, 2048, 1, 1, 1, 1, 1, 8, false,
     "selective"},
    {"gpt3-175b", "gpt3_175b", "gpt", 4, 2048, 2048, 2, 4, 8, 6, 1, 1, true, ""},
};

}  // namespace

std::span<const BridgeRecipe> bridge_recipes() { return recipes; }

const BridgeRecipe* bridge_recipe_of(std::string_view model) {
  const std::string plain = plain_model_name(model);
  for (const BridgeRecipe& one : recipes)
    if (plain_model_name(one.model) == plain) return &one;
  return nullptr;
}

std::string_view recipe_stem(std::string_view function) {
  for (const std::string_view end : {"_pretrain", "_sft", "_finetune", "_peft", "_lora", "_dora"})
    if (const std::size_t at = function.find(end); at != std::string_view::npos)
      return function.substr(0, at);
  return function;
}

const BridgeRecipe* bridge_recipe_named(std::string_view function) {
  const auto found = std::ranges::find(recipes, recipe_stem(function), &BridgeRecipe::stem);
  return found == std::end(recipes) ? nullptr : &*found;
}

std::string pretrain_function(const BridgeRecipe& recipe) {
  return std::string(recipe.stem) + "_pretrain_config";
}

int bridge_release(std::string_view nemo_version) {
  constexpr std::pair<std::string_view, int> containers[] = {
      {"25.11", 2}, {"26.02", 3}, {"26.04", 4}, {"26.06", 5}};
  int out = 0;
  for (const auto& [container, minor] : containers)
    if (nemo_version >= container) out = minor;
  return nemo_version.find('.') == std::string_view::npos ? 0 : out;
}

}  // namespace stepcast::sim
