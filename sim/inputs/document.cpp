#include "sim/inputs/document.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scripts/settings.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

TomlValue value(std::int64_t number) { return {number, ""}; }
TomlValue value(std::string text) { return toml_text(std::move(text), ""); }

/// [cluster] of the ranks on nodes of the GPU.
void set_cluster(TomlValue& out, const Facts& facts, const Catalogue& catalogue) {
  const auto& gpus = catalogue.gpus();
  const GpuIdentity* gpu = gpus.by_cuda_name(facts.gpu);
  std::string name(without_maker(facts.gpu));
  std::ranges::replace(name, ' ', '-');
  if (gpu == nullptr && !name.empty()) gpu = gpus.nearest(name);
  if (gpu != nullptr && find_path(out, "cluster.node") == nullptr)
    set_path(out, "cluster.node",
             catalogue.node_of_gpu(gpu->gpu.name, "cluster.node").value("cluster.node"));
}

/// Nodes of that many ranks, once the node is known.
void set_nodes(TomlValue& out, const Facts& facts, const Catalogue& catalogue) {
  const TomlValue* node = find_path(out, "cluster.node");
  const bool said =
      find_path(out, "cluster.nodes") != nullptr || find_path(out, "cluster.gpus") != nullptr;
  if (node == nullptr || said || !facts.ranks) return;
  const std::int64_t each = catalogue.node(*node).gpus;
  if (*facts.ranks < each) {
    set_path(out, "cluster.nodes", value(std::int64_t{1}));
    set_path(out, "cluster.gpus", value(*facts.ranks));
  } else if (*facts.ranks % each == 0) {
    set_path(out, "cluster.nodes", value(*facts.ranks / each));
  }
}

/// A whole number of the document; 0: it says none.
std::int64_t count_of(const TomlValue& document, std::string_view key) {
  const TomlValue* found = find_path(document, key);
  const auto* number = found == nullptr ? nullptr : std::get_if<std::int64_t>(&found->data);
  return number == nullptr ? 0 : *number;
}

/// GPUs of the machine; 0: nobody says.
std::int64_t gpus_of(const TomlValue& document, const Catalogue& catalogue) {
  const TomlValue* node = find_path(document, "cluster.node");
  if (node == nullptr) return 0;
  const std::int64_t gpus = count_of(document, "cluster.gpus");
  return gpus > 0 ? gpus : count_of(document, "cluster.nodes") * catalogue.node(*node).gpus;
}

/// Copies of the sharded state share the data ranks, once these are known.
void set_shard_degree(TomlValue& out, const Facts& facts, const Catalogue& catalogue) {
  const std::int64_t ranks = gpus_of(out, catalogue);
  if (facts.copies < 2 || count_of(out, "plan.shard_degree") > 0) return;
  std::int64_t others = facts.copies;
  for (const char* key : {"plan.tensor", "plan.pipeline"})
    others *= std::max<std::int64_t>(1, count_of(out, key));
  if (ranks > 0 && ranks % others == 0) set_path(out, "plan.shard_degree", value(ranks / others));
}

/// The most sequences a micro-batch may have that divide a replica's share of the batch.
void set_micro_batch(TomlValue& out, const Facts& facts, const Catalogue& catalogue) {
  if (facts.most_micro_batch < 1 || find_path(out, "batch.micro_batch") != nullptr) return;
  std::int64_t replicas = gpus_of(out, catalogue);
  for (const char* key : {"plan.tensor", "plan.pipeline", "plan.context"})
    replicas /= std::max<std::int64_t>(1, count_of(out, key));
  const std::int64_t all = replicas > 0 ? count_of(out, "batch.global") / replicas : 0;
  std::int64_t one = std::min(facts.most_micro_batch, std::max<std::int64_t>(1, all));
  while (one > 1 && all % one != 0) --one;
  set_path(out, "batch.micro_batch", value(one));
}

/// Layers of the document's model; 0: nobody says.
std::int64_t layers_of(const TomlValue& document, const Catalogue& catalogue) {
  const TomlValue* layers = find_path(document, "model.layers");
  const TomlValue* name = find_path(document, "model.name");
  if (layers == nullptr && name != nullptr && name->text() != nullptr && !name->text()->empty() &&
      catalogue.has("models", *name->text())) {
    const TomlValue entry = catalogue.entry("models", *name->text(), "model.name");
    const TomlValue* said = entry.find("layers");
    const auto* number = said == nullptr ? nullptr : std::get_if<std::int64_t>(&said->data);
    return number == nullptr ? 0 : *number;
  }
  const auto* number = layers == nullptr ? nullptr : std::get_if<std::int64_t>(&layers->data);
  return number == nullptr ? 0 : *number;
}

/// So many checkpoints are those of every n-th layer, once the model is known.
void set_checkpoints(TomlValue& out, const Facts& facts, const Catalogue& catalogue) {
  const std::int64_t layers = layers_of(out, catalogue);
  if (facts.checkpoints < 1 || layers <= facts.checkpoints ||
      find_path(out, "plan.recompute_every") != nullptr)
    return;
  const TomlValue* kind = find_path(out, "plan.recompute");
  if (kind != nullptr && kind->text() != nullptr && *kind->text() == "full")
    set_path(out, "plan.recompute_every",
             value((layers + facts.checkpoints - 1) / facts.checkpoints));
}

bool is_named(const TomlValue& document, const Catalogue& catalogue) {
  const TomlValue* name = find_path(document, "model.name");
  return name != nullptr && name->text() != nullptr && catalogue.has("models", *name->text());
}

}  // namespace

TomlValue facts_document(const Facts& facts, const std::string& where) {
  TomlValue out = toml_table(where);
  for (const char* table : {"model", "cluster", "plan", "batch"}) out.set(table, toml_table(where));
  for (const Fact& fact : facts.all) set_path(out, fact.key, fact.value);
  return out;
}

void complete_machine(TomlValue& out, const Facts& facts, const Catalogue& catalogue) {
  set_cluster(out, facts, catalogue);
  set_nodes(out, facts, catalogue);
  set_shard_degree(out, facts, catalogue);
  set_micro_batch(out, facts, catalogue);
  set_checkpoints(out, facts, catalogue);
  if (find_path(out, "model.name") == nullptr && find_path(out, "model.layers") != nullptr)
    set_path(out, "model.name", value(std::string("as-logged")));
}

std::vector<MissingKey> missing_keys(const TomlValue& out, const Facts& facts,
                                     const Catalogue& catalogue) {
  std::vector<MissingKey> missing;
  const auto need = [&](const char* key, const std::string& example, const std::string& option) {
    if (find_path(out, key) == nullptr) missing.push_back({key, example, option + " " + example});
  };
  const auto set = [](const char* key) { return "--set " + std::string(key); };
  if (!is_named(out, catalogue)) {
    if (find_path(out, "model.layers") == nullptr) {
      const TomlValue* name = find_path(out, "model.name");
      if (name == nullptr)
        need("model.name", "llama3-8b", "--model");
      else
        missing.push_back({fmt::format("a model that is known ('{}' is none)",
                                       name->text() != nullptr ? *name->text() : ""),
                           "llama3-8b", "--model llama3-8b"});
    } else {
      for (const auto& [key, example] : {std::pair{"model.hidden", "4096"},
                                         {"model.heads", "32"},
                                         {"model.ffn_hidden", "14336"},
                                         {"model.vocab", "128256"}})
        if (find_path(out, key) == nullptr)
          missing.push_back({key, example, set(key) + "=" + example});
    }
  }
  need("model.sequence", "8192", "--sequence");
  if (find_path(out, "cluster.node") == nullptr)
    missing.push_back({"cluster.node", "dgx-h100", "--gpu h100"});
  const TomlValue* node = find_path(out, "cluster.node");
  const bool sized =
      find_path(out, "cluster.nodes") != nullptr || find_path(out, "cluster.gpus") != nullptr;
  if (!facts.ranks && !sized) missing.push_back({"cluster.nodes", "1", "--nodes 2"});
  if (facts.ranks && node != nullptr && !sized)
    missing.push_back({"cluster.nodes",
                       fmt::format("{} ranks are no whole nodes of {} GPUs", *facts.ranks,
                                   catalogue.node(*node).gpus),
                       "--nodes 2"});
  if (find_path(out, "batch.local") == nullptr) need("batch.global", "256", "--global-batch");
  return missing;
}

namespace {

/// What refuses it on so many nodes; empty: nothing.
std::string refusal_on(TomlValue document, std::int64_t nodes, const Facts& facts,
                       const Catalogue& catalogue) {
  set_path(document, "cluster.nodes", value(nodes));
  complete_machine(document, facts, catalogue);
  try {
    read_scenario(document, catalogue);
  } catch (const InputError& error) {
    return error.problem() + (error.hint().empty() ? "" : ", " + error.hint());
  }
  return "";
}

}  // namespace

std::string refusal_besides(const TomlValue& document, const Facts& facts,
                            const Catalogue& catalogue, std::span<const MissingKey> missing) {
  constexpr std::int64_t most = 512, batch = 8192;
  TomlValue whole = document;
  for (const MissingKey& one : missing) {
    if (one.key == "cluster.nodes") continue;
    const auto number = integer_in(one.example);
    if (!number) return "";
    set_path(whole, one.key, value(one.key == "batch.global" ? batch : *number));
  }
  std::string last, same;  // what two numbers of nodes meet alike is of neither
  for (std::int64_t nodes = 1; nodes <= most; nodes *= 2) {
    const std::string refused = refusal_on(whole, nodes, facts, catalogue);
    if (refused.empty()) return "";
    if (same.empty() && refused == last) same = refused;
    last = refused;
  }
  return same;
}

std::string left_open(const TomlValue& document, const Scenario& s) {
  const TomlValue resolved = resolved_document(s);
  std::vector<std::string> open;
  for (const char* key : {"plan.data", "plan.tensor", "plan.pipeline", "plan.recompute",
                          "precision.compute", "software.framework"}) {
    const TomlValue* found = find_path(resolved, key);
    if (find_path(document, key) == nullptr && found != nullptr)
      open.push_back(fmt::format("{} = {}", key, write_toml_value(*found)));
  }
  if (open.empty()) return "";
  return fmt::format("Nobody says, so as usual: {}.", fmt::join(open, ", "));
}

}  // namespace stepcast::sim
