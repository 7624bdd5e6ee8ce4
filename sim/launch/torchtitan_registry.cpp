#include "sim/launch/torchtitan_registry.hpp"

#include "sim/import/model_index.hpp"

namespace stepcast::sim {
namespace {

constexpr RegisteredModel registry[] = {
    {"llama3-8b", "llama3_8b", "llama3", "8B", 8192, 8192},
    {"llama3-70b", "llama3_70b", "llama3", "70B", 65536, 8192, 8, 1, true},
    {"llama3-405b", "llama3_405b", "llama3", "405B", 16384, 8192, 8, 1, true},
    {"llama3.2-3b", "llama3_8b", "llama3", "3B", 8192, 8192, 1, 1, false, false},
    {"Llama-3.2-1B", "llama3_8b", "llama3", "1B", 8192, 8192, 1, 1, false, false},
    {"Qwen3-0.6B", "qwen3_0_6b", "qwen3", "0.6B", 16384, 4096},
    {"Qwen3-1.7B", "qwen3_1_7b", "qwen3", "1.7B", 16384, 4096},
    {"Qwen3-4B", "qwen3_1_7b", "qwen3", "4B", 16384, 4096, 1, 1, false, false},
    {"qwen3-8b", "sft_qwen3_8b_math", "qwen3", "8B", 2048, 2048},
    {"Qwen3-14B", "qwen3_14b", "qwen3", "14B", 16384, 4096, 1, 1, true},
    {"qwen3-32b", "qwen3_32b", "qwen3", "32B", 8192, 4096, 1, 1, true},
    {"qwen3-30b-a3b", "qwen3_30b_a3b", "qwen3", "30B-A3B", 8192, 4096, 1, 1, true},
    {"qwen3-235b-a22b", "qwen3_30b_a3b", "qwen3", "235B-A22B", 8192, 4096, 1, 1, true, false},
    {"deepseek-v2-lite", "deepseek_v3_16b", "deepseek_v3", "16B", 16384, 4096, 1, 8},
    {"deepseek-v2", "deepseek_v3_671b", "deepseek_v3", "236B", 16384, 4096, 1, 2, false, false},
    {"deepseek-v3", "deepseek_v3_671b", "deepseek_v3", "671B", 16384, 4096, 1, 2},
    {"Qwen3.5-0.8B", "qwen35_0_8b", "qwen3_5", "0.8B", 16384, 4096},
    {"Qwen3.5-2B", "qwen35_2b", "qwen3_5", "2B", 16384, 4096},
    {"Qwen3.5-4B", "qwen35_4b", "qwen3_5", "4B", 16384, 4096, 1, 1, true},
    {"Qwen3.5-9B", "qwen35_9b", "qwen3_5", "9B", 16384, 4096, 2, 1, true},
    {"Qwen3.5-27B", "qwen35_27b", "qwen3_5", "27B", 16384, 4096, 4, 1, true},
    {"Qwen3.5-35B-A3B", "qwen35_35b_a3b", "qwen3_5", "35B-A3B", 16384, 4096, 2, 8, true},
    {"Qwen3.5-122B-A10B", "qwen35_122b_a10b", "qwen3_5", "122B-A10B", 16384, 4096, 4, 8, true},
    {"Qwen3.5-397B-A17B", "qwen35_397b_a17b", "qwen3_5", "397B-A17B", 16384, 4096, 8, 16, true},
    {"gpt-oss-20b", "gpt_oss_20b", "gpt_oss", "20b", 8192, 8192, 1, 1, true},
    {"gpt-oss-120b", "gpt_oss_120b", "gpt_oss", "120b", 8192, 8192, 1, 1, true},
    {"moonlight-16b-a3b", "moonlight_16b_a3b", "kimi_k2_7", "moonlight-16B-A3B", 16384, 4096, 1, 8,
     true},
    {"kimi-k2", "kimi_k2_5", "kimi_k2_7", "Kimi-K2.5", 16384, 4096, 1, 8, true},
    {"Kimi-K2.5", "kimi_k2_5", "kimi_k2_7", "Kimi-K2.5", 16384, 4096, 1, 8, true},
};

/// Models of the TOML of 2024 and 2025 that the registry of 2026 has no longer.
constexpr TomlModel in_toml_alone[] = {{"llama4-scout", "llama4", "17bx16e"},
                                       {"llama4-maverick", "llama4", "17bx128e"}};

/// Whether the TOML of 2025 had it too: some models came with the registry of 2026.
bool has_toml(const RegisteredModel& one) {
  const bool small = one.module == "llama3" && (one.flavor == "1B" || one.flavor == "3B");
  return one.module != "kimi_k2_7" && one.module != "qwen3_5" && !small;
}

}  // namespace

std::span<const RegisteredModel> torchtitan_registry() { return registry; }

const RegisteredModel* registered_model(std::string_view model) {
  const std::string plain = plain_model_name(model);
  for (const RegisteredModel& one : registry)
    if (plain_model_name(one.model) == plain) return &one;
  return nullptr;
}

const RegisteredModel* registered_function(std::string_view function) {
  for (const RegisteredModel& one : registry)
    if (one.own && one.function == function) return &one;
  return nullptr;
}

TomlModel toml_model(std::string_view model) {
  for (const TomlModel& one : in_toml_alone)
    if (one.model == model) return one;
  const RegisteredModel* since = registered_model(model);
  return since != nullptr && has_toml(*since)
             ? TomlModel{since->model, since->module, since->flavor}
             : TomlModel{};
}

TomlModel toml_model_of(std::string_view module, std::string_view flavor) {
  constexpr std::string_view irope = "_irope";
  if (flavor.ends_with(irope)) flavor.remove_suffix(irope.size());
  for (const TomlModel& one : in_toml_alone)
    if (one.module == module && one.flavor == flavor) return one;
  for (const RegisteredModel& one : registry)
    if (one.module == module && one.flavor == flavor && has_toml(one))
      return {one.model, one.module, one.flavor};
  return {};
}

}  // namespace stepcast::sim
