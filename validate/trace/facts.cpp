#include "validate/trace/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "sim/tables/gpu_identity.hpp"
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

/// What runs call the GPU `gpu` of the catalogue: CUDA's name of it, words of its name, or the
/// chip's first word, "H100" of "H100-96GB". Of cards the whole name, maybe cut short: an RTX 3090
/// Ti is no RTX 3090.
bool same_gpu(std::string_view measured, const std::string& gpu, const sim::GpuIdentities& known) {
  const std::string_view bare = sim::without_maker(measured);
  const auto own =
      std::ranges::find(known.all(), gpu, [](const auto& one) { return one.gpu.name; });
  std::string name(bare);
  std::ranges::replace(name, ' ', '-');
  if (const auto* found = known.by_cuda_name(measured);
      found != nullptr && own != known.all().end())
    return found->gpu.name == gpu || sim::kinship(name, gpu) == sim::Kinship::same;
  if (name.starts_with("GeForce-")) name.erase(0, name.find('-') + 1);
  if (!name.starts_with("RTX-"))
    return sim::kinship(name.substr(0, name.find('-')), gpu) == sim::Kinship::same;
  const auto cut = [&](const std::string& whole) { return whole.starts_with(bare); };
  return sim::table_name(name) == sim::table_name(gpu) ||
         (own != known.all().end() && std::ranges::any_of(own->cuda_names, cut));
}

}  // namespace

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

void add_facts(Facts& facts, const Facts& more, const std::string& path) {
  for (const auto& [key, other] :
       {std::pair{"batch.global", "batch.local"}, {"batch.local", "batch.global"}})
    if (more.find(key) != nullptr) facts.erase(other);
  for (const Fact& fact : more.all) facts.set(fact.key, fact.value, fact.source);
  if (more.ranks) facts.ranks = more.ranks, facts.ranks_source = path;
  if (!more.gpu.empty()) facts.gpu = more.gpu, facts.gpu_source = path;
  facts.gpus_per_node = std::max(facts.gpus_per_node, more.gpus_per_node);
  facts.copies = std::max(facts.copies, more.copies);
  facts.checkpoints = std::max(facts.checkpoints, more.checkpoints);
  facts.updates = std::max(facts.updates, more.updates);
}

std::vector<std::string> contradictions(const Facts& facts, const sim::Scenario& s,
                                        const sim::GpuIdentities& known) {
  std::vector<std::string> out;
  if (facts.ranks && *facts.ranks != s.gpus)
    out.push_back(fmt::format("Warning: {} is of {} ranks, the scenario of {} GPUs.",
                              facts.ranks_source, *facts.ranks, s.gpus));
  if (!facts.gpu.empty() && !same_gpu(facts.gpu, s.node.gpu.name, known))
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

sim::TomlValue document_of(const Facts& facts,
                           const std::vector<std::pair<std::string, sim::TomlValue>>& settings,
                           const sim::Catalogue& catalogue) {
  sim::TomlValue out = sim::facts_document(facts, "run.toml");
  // What a run is measured against does not wait; that it does is a finding.
  for (const char* waits : {"software.launch_blocking", "software.collective_checks"})
    sim::erase_path(out, waits);
  for (const auto& [key, said] : settings) sim::set_path(out, key, said);
  sim::complete_machine(out, facts, catalogue);
  std::vector<std::string> missing;
  for (const sim::MissingKey& one : sim::missing_keys(out, facts, catalogue))
    missing.push_back(fmt::format("{} ({})", one.key, one.example));
  if (!missing.empty())
    throw InputError(
        "the scenario",
        fmt::format("cannot be read from the files: nobody says {}", fmt::join(missing, ", ")),
        "give each as --set KEY=VALUE, or all as --scenario FILE.toml");
  return out;
}

}  // namespace stepcast::validate
