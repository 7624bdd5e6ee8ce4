#include "validate/published/row_keys.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/arithmetic.hpp"
#include "sim/files/names.hpp"
#include "validate/rows/pattern.hpp"
#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

using sim::TomlValue;

bool overlaps_experts(const PublishedRow& row, const FrameworkDefaults& framework) {
  return stated_expert_overlap(row) && !framework.later_recipe;
}

/// What CUDA graphs replay; a whole iteration has no host between its layers.
void put_graphs(const PublishedRow& row, const FrameworkDefaults& framework,
                ScenarioTable& software) {
  const std::string text = lower(row.cuda_graph), flags = lower(row.other_flags);
  const bool iteration = has_word(text, {"full iteration", "full_iteration"});
  if (iteration && !framework.later_recipe) {
    software.put("cuda_graphs", std::string("iteration"));
    if (row.has_experts()) software.put("host_sync", std::string("none"));
  } else if (iteration || has_word(text, {"attn", "moe_router", "layer"}) ||
             (has_word(flags, {"cuda graphs"}) && !has_word(flags, {"no cuda graphs"}))) {
    software.put("cuda_graphs", std::string("layers"));
  }
}

/// How the ranks of a sequence travel; the names of DeepSpeed, Megatron and PyTorch.
void put_exchange(const PublishedRow& row, ScenarioTable& software) {
  if (row.cp.value_or(1) <= 1) return;
  const std::string text = lower(row.other_flags + " " + row.attention_kernel + " " + row.notes);
  for (const auto& [word, exchange] : {std::pair{"ulysses", "all_to_all"},
                                       {"cp a2a", "all_to_all"},
                                       {"cp p2p", "ring"},
                                       {"ring", "ring"}})
    if (has_word(text, {word})) return software.put("context_exchange", std::string(exchange));
}

/// Scored rows are those in which checks hardly show. With ZeRO-1 they show less than a check of
/// every reduction would; how many there are is not known, so none is taken.
bool states_checks(const PublishedRow& row) {
  const bool hardly = row.scorable && row.dp_mode == "zero1";
  return !hardly && has_word(lower(row.notes), {"torch_distributed_debug=detail"});
}

}  // namespace

void put_expert_plan(const PublishedRow& row, const FrameworkDefaults& framework,
                     ScenarioTable& plan) {
  plan.put("expert", std::max<std::int64_t>(1, row.ep.value_or(1)));
  if (row.etp) plan.put("expert_tensor", std::max<std::int64_t>(1, *row.etp));
  const std::string text = lower(row.dispatcher + " " + row.other_flags);
  for (const auto& [word, dispatcher] : {std::pair{"hybridep", "nvlink_domain"},
                                         {"deepep", "node_aware"},
                                         {"alltoall", "all_to_all"},
                                         {"all-to-all", "all_to_all"},
                                         {"allgather", "all_gather"}})
    if (has_word(text, {word})) plan.put("dispatcher", std::string(dispatcher));
  if (overlaps_experts(row, framework)) plan.put_flag("expert_overlap", true);
  if (lower(row.ep_overlap) == "no") plan.put_flag("expert_overlap", false);
  if (has_word(text, {"delayed wgrad"})) plan.put_flag("delay_wgrad", true);
  if (const auto capacity = stated_capacity(row)) plan.put("capacity_factor", *capacity);
}

void put_memory_plan(const PublishedRow& row, ScenarioTable& plan) {
  TomlValue::Array modules;
  for (const std::string& module : stated_modules(row))
    modules.push_back(sim::toml_text(module, plan.where()));
  if (!modules.empty())
    plan.put("recompute_modules", {.data = std::move(modules), .where = plan.where()});
  if (const std::string optimizer = stated_optimizer(row); !optimizer.empty())
    plan.put("optimizer", optimizer);
  if (updates_in_backward(row)) plan.put_flag("optimizer_in_backward", true);
  const StatedOffload offload = stated_offload(row);
  if (offload.activations > 0) plan.put("activation_offload", offload.activations);
  if (offload.optimizer > 0) plan.put("optimizer_offload", offload.optimizer);
  if (offload.parameters > 0) {
    plan.put("parameter_offload", offload.parameters);
    plan.put("optimizer_offload", std::max(offload.optimizer, offload.parameters));
  }
  if (offload.overlap) plan.put_flag("optimizer_offload_overlap", true);
  if (stated_tiles(row)) {
    const std::int64_t tokens = row.micro_batch_seqs.value_or(1) * row.seq_len.value_or(1) /
                                std::max<std::int64_t>(1, row.cp.value_or(1));
    plan.put("mlp_tiles", ceil_div(tokens, std::max<std::int64_t>(1, row.hidden.value_or(4096))));
  }
}

std::vector<std::string> put_adapters(const PublishedRow& row, const FrameworkDefaults& framework,
                                      TomlValue& model, const std::string& where) {
  const StatedAdapters adapters = stated_adapters(row);
  if (adapters.rank == 0) return {};
  for (const sim::TomlEntry& usual : *framework.adapters.table()) model.set(usual.key, usual.value);
  const auto open = [&](const char* key, bool stated) {
    return !stated && framework.adapters.find(key) == nullptr;
  };
  std::vector<std::string> told;
  if (open("lora_rank", adapters.states_rank))
    told.emplace_back("the rank of adapters is not stated: 8 taken");
  if (open("lora_targets", adapters.states_targets))
    told.emplace_back("which products have adapters is not stated: all dense ones taken");
  if (adapters.states_rank || model.find("lora_rank") == nullptr)
    model.set("lora_rank", {adapters.rank, where});
  if (adapters.states_targets || model.find("lora_targets") == nullptr) {
    TomlValue::Array targets;
    for (const std::string& target : adapters.targets)
      targets.push_back(sim::toml_text(target, where));
    model.set("lora_targets", {.data = std::move(targets), .where = where});
  }
  if (adapters.four_bits) model.set("lora_base", sim::toml_text("nf4", where));
  return told;
}

void put_software(const PublishedRow& row, const FrameworkDefaults& framework,
                  ScenarioTable& software) {
  if (framework.optimizer == "lamb") software.put("optimizer", framework.optimizer);
  if (has_word(lower(row.other_flags), {"without expandable segments"}))
    software.put_flag("expandable_segments", false);
  put_graphs(row, framework, software);
  // Streams that run beside each other need more connections than tensor_overlap leaves them.
  if (overlaps_experts(row, framework)) software.put_flag("tensor_overlap", false);
  put_exchange(row, software);
  if (states_checks(row)) software.put_flag("collective_checks", true);
  // A rule that knows the framework's form of what the row names decides.
  const bool ruled = framework.software.find("loss_form") != nullptr;
  if (const std::string loss = stated_loss(row); !loss.empty() && !ruled) {
    const bool form = std::ranges::any_of(sim::loss_form_names,
                                          [&](const auto& name) { return name.first == loss; });
    software.put(form ? "loss_form" : "loss_memory", loss);
    if (loss == "gradient") software.put_flag("fused_loss", true);
  }
  if (has_word(lower(row.other_flags), {"fused rmsnorm"})) software.put_flag("fused_norm", true);
}

namespace {

/// Performance recipes of Megatron-Bridge force a balance (moe_router_force_load_balancing), runs
/// on a data set have what their router says.
bool routes_naturally(const PublishedRow& row) {
  const std::string words = lower(row.routing + " " + row.other_flags);
  if (has_word(words, {"natural", "random"})) return true;
  if (row.columns != ColumnSet::what_ran || has_word(words, {"forced balance"})) return false;
  const bool recipe = has_word(lower(row.framework), {"bridge"});
  return !recipe || has_word(words, {"sft"}) || !row.lora_rank.empty();
}

}  // namespace

/// Over a validation set the fullest expert of models trained with an auxiliary loss has 1.52 to
/// 1.72 times the mean (arXiv 2408.15664, table 2, models of 3B and 1B; recalled, 2026).
TomlValue routing_table(const PublishedRow& row, const std::string& where) {
  constexpr double violation = 0.62;
  ScenarioTable routing(where);
  const bool natural = routes_naturally(row), measured = row.columns == ColumnSet::what_ran;
  routing.put("kind", std::string(!natural ? "balanced" : measured ? "max_violation" : "uniform"));
  if (natural && measured) routing.put("max_violation", violation);
  return routing.take();
}

std::vector<std::string> told_of_words(const PublishedRow& row) {
  if (row.columns != ColumnSet::what_ran) return {};
  std::vector<std::string> told = told_of_flags(row);
  if (const std::string packing = told_of_packing(row); !packing.empty()) told.push_back(packing);
  if (has_word(lower(row.loss_kernel), {"unfused"}))
    told.push_back("'" + row.loss_kernel + "' taken as the framework's kernels");
  if (has_word(lower(row.fp8_recipe), {"rowwise"}))
    told.emplace_back("fp8 scaled by rows taken as scaled by tensors");
  if (has_word(lower(row.compile), {"graph trainer"}))
    told.emplace_back("a traced graph of eager mode's kernels");
  return told;
}

}  // namespace stepcast::validate
