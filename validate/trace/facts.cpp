#include "validate/trace/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "sim/tables/gpu_names.hpp"
#include "validate/trace/records/numbers.hpp"

namespace stepcast::validate {
namespace {

sim::TomlValue value(std::int64_t number) { return {number, ""}; }
sim::TomlValue value(std::string text) { return sim::toml_text(std::move(text), ""); }

/// A communicator's kind by the name that its framework gave it: torch's DeviceMesh ("mesh_tp") and
/// megatron/core/parallel_state.py ("TENSOR_MODEL_PARALLEL_GROUP", core_v0.9 on).
constexpr std::pair<const char*, const char*> group_keys[] = {
    {"mesh_tp", "plan.tensor"},
    {"mesh_pp", "plan.pipeline"},
    {"mesh_cp", "plan.context"},
    {"TENSOR_MODEL_PARALLEL_GROUP", "plan.tensor"},
    {"PIPELINE_MODEL_PARALLEL_GROUP", "plan.pipeline"},
    {"CONTEXT_PARALLEL_GROUP", "plan.context"},
};

bool same_gpu(const std::string& measured, const std::string& catalogue) {
  std::string name(sim::without_maker(measured));
  std::ranges::replace(name, ' ', '-');
  const std::string chip = name.substr(0, name.find('-'));
  return sim::kinship(chip, catalogue) == sim::Kinship::same;
}

/// [cluster] of the ranks on nodes of the GPU.
void set_cluster(const Facts& facts, const sim::Catalogue& catalogue, sim::TomlValue& out) {
  const auto& gpus = catalogue.gpus();
  const sim::GpuIdentity* gpu = gpus.by_cuda_name(facts.gpu);
  std::string name(sim::without_maker(facts.gpu));
  std::ranges::replace(name, ' ', '-');
  if (gpu == nullptr && !name.empty()) gpu = gpus.nearest(name);
  if (gpu != nullptr && sim::find_path(out, "cluster.node") == nullptr)
    sim::set_path(out, "cluster.node",
                  catalogue.node_of_gpu(gpu->gpu.name, "cluster.node").value("cluster.node"));
}

/// Nodes of that many ranks, once the node is known.
void set_nodes(const Facts& facts, const sim::Catalogue& catalogue, sim::TomlValue& out) {
  const sim::TomlValue* node = sim::find_path(out, "cluster.node");
  const bool said = sim::find_path(out, "cluster.nodes") != nullptr;
  if (node == nullptr || said || !facts.ranks) return;
  const std::int64_t each = catalogue.node(*node).gpus;
  if (*facts.ranks < each) {
    sim::set_path(out, "cluster.nodes", value(std::int64_t{1}));
    sim::set_path(out, "cluster.gpus", value(*facts.ranks));
  } else if (*facts.ranks % each == 0) {
    sim::set_path(out, "cluster.nodes", value(*facts.ranks / each));
  }
}

}  // namespace

const sim::TomlValue* Facts::find(std::string_view key) const {
  const auto at = std::ranges::find(all, key, &Fact::key);
  return at == all.end() ? nullptr : &at->value;
}

std::optional<std::int64_t> Facts::integer(std::string_view key) const {
  const sim::TomlValue* found = find(key);
  const auto* number = found == nullptr ? nullptr : std::get_if<std::int64_t>(&found->data);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

void Facts::set(const std::string& key, sim::TomlValue what, const std::string& source) {
  what.where = source;
  const auto at = std::ranges::find(all, key, &Fact::key);
  if (at == all.end())
    all.push_back({key, std::move(what), source});
  else
    *at = {key, std::move(what), source};
}

void add_facts(Facts& facts, const RankTrace& trace, const sim::Catalogue& catalogue) {
  if (trace.world_size) facts.ranks = trace.world_size, facts.ranks_source = trace.file;
  if (!trace.gpu.empty()) facts.gpu = trace.gpu, facts.gpu_source = trace.file;
  for (const ProcessGroup& group : trace.groups)
    for (const auto& [description, key] : group_keys)
      if (group.description == description && group.size > 0)
        facts.set(key, value(group.size), trace.file);
  if (trace.nccl.empty()) return;
  try {
    catalogue.nccl(trace.nccl);
    facts.set("cluster.nccl", value(trace.nccl), trace.file);
  } catch (const InputError&) {
    // One that nobody has described; the framework's own stays.
  }
}

std::vector<std::string> contradictions(const Facts& facts, const sim::Scenario& s) {
  std::vector<std::string> out;
  if (facts.ranks && *facts.ranks != s.gpus)
    out.push_back(fmt::format("Warning: {} is of {} ranks, the scenario of {} GPUs.",
                              facts.ranks_source, *facts.ranks, s.gpus));
  if (!facts.gpu.empty() && !same_gpu(facts.gpu, s.node.gpu.name))
    out.push_back(fmt::format("Warning: {} is of {}, the scenario of {}.", facts.gpu_source,
                              printable(facts.gpu), s.node.gpu.name));
  const sim::TomlValue resolved = sim::resolved_document(s);
  for (const Fact& fact : facts.all) {
    if (fact.key == "model.name" || fact.key.starts_with("software.")) continue;
    const sim::TomlValue* simulated = sim::find_path(resolved, fact.key);
    if (simulated == nullptr || sim::same_value(*simulated, fact.value)) continue;
    out.push_back(fmt::format("Warning: {} has {} = {}, the scenario {}.", fact.source, fact.key,
                              sim::write_toml_value(fact.value),
                              sim::write_toml_value(*simulated)));
  }
  return out;
}

std::string left_open(const sim::TomlValue& document, const sim::Scenario& s) {
  const sim::TomlValue resolved = sim::resolved_document(s);
  std::vector<std::string> open;
  for (const char* key : {"plan.data", "plan.tensor", "plan.pipeline", "plan.recompute",
                          "precision.compute", "software.framework"}) {
    const sim::TomlValue* value = sim::find_path(resolved, key);
    if (sim::find_path(document, key) == nullptr && value != nullptr)
      open.push_back(fmt::format("{} = {}", key, sim::write_toml_value(*value)));
  }
  if (open.empty()) return "";
  return fmt::format("Nobody says, so as usual: {}.", fmt::join(open, ", "));
}

sim::TomlValue document_of(const Facts& facts,
                           const std::vector<std::pair<std::string, sim::TomlValue>>& settings,
                           const sim::Catalogue& catalogue) {
  sim::TomlValue out = sim::toml_table("run.toml");
  for (const char* table : {"model", "cluster", "plan", "batch"})
    out.set(table, sim::toml_table("run.toml"));
  for (const Fact& fact : facts.all) sim::set_path(out, fact.key, fact.value);
  for (const auto& [key, said] : settings) sim::set_path(out, key, said);
  set_cluster(facts, catalogue, out);
  set_nodes(facts, catalogue, out);
  const sim::TomlValue* name = sim::find_path(out, "model.name");
  const bool named =
      name != nullptr && name->text() != nullptr && catalogue.has("models", *name->text());
  if (name == nullptr && sim::find_path(out, "model.layers") != nullptr)
    sim::set_path(out, "model.name", value(std::string("as-logged")));
  std::vector<std::string> missing;
  const auto need = [&](const char* key, const std::string& example) {
    if (sim::find_path(out, key) == nullptr)
      missing.push_back(fmt::format("{} ({})", key, example));
  };
  if (!named && sim::find_path(out, "model.layers") == nullptr) {
    need("model.name", "llama3-8b");
  } else if (!named) {
    need("model.hidden", "4096");
    need("model.heads", "32");
    need("model.ffn_hidden", "14336");
    need("model.vocab", "128256");
  }
  need("model.sequence", "8192");
  need("cluster.node", "dgx-h100");
  const sim::TomlValue* node = sim::find_path(out, "cluster.node");
  if (!facts.ranks) need("cluster.nodes", "1");
  if (facts.ranks && node != nullptr)
    need("cluster.nodes", fmt::format("{} ranks are no whole nodes of {} GPUs", *facts.ranks,
                                      catalogue.node(*node).gpus));
  if (sim::find_path(out, "batch.local") == nullptr) need("batch.global", "256");
  if (!missing.empty())
    throw InputError(
        "the scenario",
        fmt::format("cannot be read from the files: nobody says {}", fmt::join(missing, ", ")),
        "give each as --set KEY=VALUE, or all as --scenario FILE.toml");
  return out;
}

}  // namespace stepcast::validate
