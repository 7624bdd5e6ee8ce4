#include "validate/rows/row_words.hpp"

#include <algorithm>
#include <utility>

#include "sim/files/names.hpp"
#include "validate/rows/pattern.hpp"

namespace stepcast::validate {
namespace {

using workloads::Recompute;

/// Megatron's names of modules that are recomputed (recompute_modules), and ours.
constexpr std::pair<const char*, const char*> module_words[] = {
    {"core_attn", "attention_core"},
    {"layernorm", "norm"},
    {"mla_up_proj", "latent_up"},
    {"moe_act", "expert_activation"},
    {"shared_experts", "shared_experts"}};

/// Words that name modules stand in a column of their own, or where the kind of recompute does.
std::string module_text(const PublishedRow& row) {
  if (row.columns == ColumnSet::measured) return lower(row.recompute_modules);
  const std::string text = lower(row.activation_checkpointing);
  static const Pattern mlp("\\bmlp\\b", "module_text");
  const bool names = std::ranges::any_of(
      module_words, [&](const auto& module) { return has_word(text, {module.first}); });
  return names || mlp.found_in(text) ? text : "";
}

/// A kind that plans may have by this name, or none that is known.
std::optional<Recompute> kind_named(const std::string& name) {
  for (const auto& [known, kind] : sim::recompute_names)
    if (name == known) return kind;
  return std::nullopt;
}

}  // namespace

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool has_word(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

std::string stated_recipe(const PublishedRow& row) {
  const std::string text = lower(row.precision + " " + row.fp8_recipe);
  if (has_word(text, {"int8"})) throw RefusedRow{"precision int8"};
  if (has_word(text, {"nvfp4"})) return "nvfp4";
  if (has_word(text, {"mxfp8", "fp8-mx", "fp8_mx"})) return "mxfp8";
  if (has_word(text, {"fp4", "mxfp"})) throw RefusedRow{"precision " + lower(row.precision)};
  if (!has_word(text, {"fp8", "float8"})) return "";
  // Transformer Engine's own default is delayed scaling.
  if (has_word(text, {"delayed", "te fp8"})) return "fp8_delayed";
  if (has_word(text, {"current", "tensorwise", "fp8-cs", "fp8_cs"})) return "fp8_current";
  if (has_word(text, {"block", "subchannel", "fp8-sc"})) return "fp8_block";
  if (has_word(text, {"rowwise"})) return "fp8_current";  // told by told_of_words()
  return "fp8";
}

std::optional<workloads::Dtype> stated_precision(const PublishedRow& row) {
  const std::string text = lower(row.precision);
  if (text.empty()) return std::nullopt;
  if (!stated_recipe(row).empty()) return workloads::Dtype::bf16;
  if (has_word(text, {"bf16", "bfloat16"})) return workloads::Dtype::bf16;
  if (has_word(text, {"fp16", "float16", "amp", "mixed", "half"})) return workloads::Dtype::fp16;
  throw RefusedRow{"precision " + text};
}

std::optional<Recompute> stated_recompute(const PublishedRow& row) {
  const std::string text = lower(row.activation_checkpointing);
  if (const auto kind = kind_named(text); kind && row.columns == ColumnSet::what_ran) return kind;
  // What is recomputed selectively are the modules that the row names (Megatron's
  // recompute_modules), or none.
  const std::string modules = module_text(row);
  if (!modules.empty() && !has_word(text, {"full"}))
    return has_word(modules, {"core_attn"}) ? Recompute::selective : Recompute::none;
  if (has_word(lower(row.notes), {"recompute are the repo default"})) return std::nullopt;
  if (row.columns == ColumnSet::what_ran && has_word(text, {"sac", "operator", "ops"})) {
    if (const auto kind = kind_named("ops")) return kind;
    throw RefusedRow{"recompute chosen per operator"};
  }
  if (has_word(text, {"select", "op", "core", "attn", "attention", "mlp", "norm"}))
    return Recompute::selective;
  if (has_word(text, {"full", "yes", "all", "every", "block", "uniform", "true"}))
    return Recompute::full;
  if (has_word(text, {"none", "no", "off", "false"})) return Recompute::none;
  return std::nullopt;
}

std::vector<std::string> stated_modules(const PublishedRow& row) {
  const std::string text = module_text(row);
  std::vector<std::string> out;
  for (const auto& [word, ours] : module_words)
    if (has_word(text, {word})) out.emplace_back(ours);
  static const Pattern mlp("\\bmlp\\b", "stated_modules"), moe("\\bmoe\\b", "stated_modules");
  if (mlp.found_in(text)) out.emplace_back("mlp");
  if (moe.found_in(text)) out.emplace_back("experts");
  return out;
}

bool stated_expert_overlap(const PublishedRow& row) {
  const bool flag = has_word(lower(row.other_flags), {"ep overlap", "ep with overlap"});
  return row.has_experts() && (flag || lower(row.ep_overlap) == "yes");
}

std::string kind_of(const PublishedRow& row) {
  std::string recipe;
  try {
    recipe = stated_recipe(row);
  } catch (const RefusedRow&) {
    recipe = lower(row.precision);
  }
  if (recipe.starts_with("fp8")) recipe = "fp8";
  const std::string precision = recipe.empty() ? "16 bit" : recipe;
  return (row.has_experts() ? "MoE " : "dense ") + precision;
}

}  // namespace stepcast::validate
