#include "sim/scenario/default_software.hpp"

#include <optional>
#include <string_view>

#include "sim/files/names.hpp"
#include "sim/network/nccl/tuning.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;

constexpr std::string_view chosen = "chosen by default for ";

/// What decides, of a document or of all points of its sweep.
struct PlanFacts {
  bool named = false;       // a framework stands there
  bool collective = false;  // no training step
  bool cut = false;         // tensor, context or pipeline parallel
  bool data_is_swept = false;
  std::string schedule{};  // that others than torch do not run; empty: another
  std::string data{word_for(data_parallel_names, workloads::ParallelPlan{}.data)};
};

bool is_one(const TomlValue& value) {
  const auto* degree = std::get_if<std::int64_t>(&value.data);
  return degree != nullptr && *degree == 1;
}

void take(PlanFacts& facts, const std::string& path, const TomlValue& value, bool swept) {
  if (path == "software.framework") facts.named = true;
  if (path.starts_with("collective.")) facts.collective = true;
  if (path == "plan.tensor" || path == "plan.context" || path == "plan.pipeline" ||
      path == "plan.expert")
    facts.cut = facts.cut || !is_one(value);
  if (path == "plan.schedule" && value.text() != nullptr && facts.schedule.empty() &&
      *value.text() != "gpipe" && *value.text() != "1f1b" && *value.text() != "best")
    facts.schedule = *value.text();
  if (path != "plan.data" || value.text() == nullptr || facts.data_is_swept) return;
  facts.data = *value.text();
  facts.data_is_swept = swept;
}

/// Every value of a key below `value`; in a sweep a key has an array of them, and "point" holds
/// tables of keys.
void read_facts(PlanFacts& facts, const std::string& path, const TomlValue& value, bool swept) {
  if (const auto* table = value.table()) {
    for (const TomlEntry& entry : *table) {
      const bool points = swept && path.empty() && entry.key == "point";
      const std::string inner = path.empty() ? entry.key : path + "." + entry.key;
      read_facts(facts, points ? "" : inner, entry.value, swept);
    }
  } else if (const auto* items = value.array(); items != nullptr && swept) {
    for (const TomlValue& item : *items) read_facts(facts, path, item, swept);
  } else {
    take(facts, path, value, swept);
  }
}

PlanFacts facts_of(const TomlValue& document) {
  PlanFacts facts;
  for (const TomlEntry& entry : *document.table())
    if (entry.key != "sweep" && entry.key != "reference")
      read_facts(facts, entry.key, entry.value, false);
  if (const TomlValue* sweep = document.find("sweep")) read_facts(facts, "", *sweep, true);
  facts.collective = facts.collective || document.find("collective") != nullptr;
  return facts;
}

/// What most users of such a plan run. zero1 by itself is DeepSpeed's stage 1; together with cut
/// layers it is Megatron's distributed optimizer. Zero-bubble orders are torch's. None: no kind of
/// data.
std::optional<std::string> framework_of(const PlanFacts& facts) {
  for (const auto& [word, kind] : data_parallel_names) {
    if (facts.data != word) continue;
    if (!facts.schedule.empty() && kind != DataParallel::zero1) return "torchtitan";
    if (kind == DataParallel::zero2 || kind == DataParallel::zero3) return "pytorch-fsdp2";
    if (facts.cut) return "megatron-core";
    return kind == DataParallel::ddp ? "pytorch-ddp" : "deepspeed";
  }
  return std::nullopt;
}

}  // namespace

TomlValue with_framework(TomlValue document) {
  const TomlValue* software = document.find("software");
  if (document.table() == nullptr || (software != nullptr && software->table() == nullptr))
    return document;
  const PlanFacts facts = facts_of(document);
  const auto framework = framework_of(facts);
  if (facts.named || facts.collective || !framework) return document;
  std::string why = std::string(chosen) + facts.data;
  const bool by_cut = *framework == "megatron-core";
  if (by_cut) why += " with tensor, context or pipeline parallelism";
  if (*framework == "torchtitan") why += " with schedule " + facts.schedule;
  if (facts.data_is_swept) why += ", the first of the sweep";
  set_path(document, "software.framework", toml_text(*framework, why));
  return document;
}

void suit_experts(TomlValue& document, const workloads::TransformerShape& model) {
  const std::string why = framework_by_default(document);
  if (why.empty() || model.experts.count == 0) return;
  const std::string& framework = *document.find("software")->find("framework")->text();
  // torchtitan trains no modules for further tokens.
  const char* sharded = model.mtp_layers > 0 ? "deepspeed" : "torchtitan";
  const char* runs_experts = framework == "pytorch-fsdp2" ? sharded
                             : framework == "pytorch-ddp" ? "megatron-core"
                                                          : nullptr;
  if (runs_experts == nullptr) return;
  set_path(document, "software.framework",
           toml_text(runs_experts, why + " and a model of experts"));
}

std::string framework_by_default(const TomlValue& document) {
  const TomlValue* software = document.find("software");
  const TomlValue* framework = software == nullptr ? nullptr : software->find("framework");
  return framework != nullptr && framework->where.starts_with(chosen) ? framework->where : "";
}

workloads::Software software_for(TableReader& table, const TomlValue* written,
                                 const topology::GpuSpec& gpu, const Catalogue& catalogue) {
  workloads::Software usual = catalogue.software(table);
  if (table.text("version") || usual.nccl.empty() || !nccl_before(usual.nccl, gpu.nccl_since))
    return usual;
  std::string version, nccl = gpu.nccl_since;
  for (const std::string& name : catalogue.names("software")) {
    if (!name.starts_with(usual.framework)) continue;
    TableReader entry(catalogue.entry("software", name, table.where()), "");
    const auto its = entry.text("nccl");
    if (entry.text("framework") != usual.framework || !its || nccl_before(*its, nccl)) continue;
    version = entry.text("version").value_or("");
    nccl = *its;
  }
  if (version.empty()) return usual;
  TomlValue dated = written == nullptr ? toml_table(table.where()) : *written;
  dated.set("version", toml_text(version, "the newest, older ones do not know the GPU"));
  TableReader newest(dated, "software");
  return catalogue.software(newest);
}

std::string default_nccl(const workloads::Software& software, const topology::GpuSpec& gpu) {
  const bool too_old = software.nccl.empty() || nccl_before(software.nccl, gpu.nccl_since);
  return too_old && !gpu.nccl_since.empty() ? gpu.nccl_since : software.nccl;
}

void know_data_of_frameworks(TableReader& table) {
  const TomlValue* data = table.value("data");
  if (data == nullptr || data->text() == nullptr) return;
  for (const std::string_view word : {"fsdp", "fsdp1", "fsdp2", "FSDP", "FSDP1", "FSDP2"})
    if (*data->text() == word)
      table.fail("data", table.label("data") + " is '" + std::string(word) + "'",
                 "write zero3, which gathers parameters again for the backward pass (FULL_SHARD), "
                 "or zero2, which keeps them (SHARD_GRAD_OP)");
}

}  // namespace stepcast::sim
