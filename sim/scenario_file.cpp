#include "sim/scenario_file.hpp"

#include <cmath>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/default_software.hpp"
#include "sim/member_reader.hpp"
#include "sim/names.hpp"
#include "sim/nccl_tuning.hpp"
#include "sim/noise_keys.hpp"

namespace stepcast::sim {
namespace {

/// Largest cluster that the data structures are made for (ranks are counted in 32 bits elsewhere).
constexpr std::int64_t max_gpus = 4'000'000;

void read_cluster(TableReader& table, const Catalogue& catalogue, Scenario& scenario) {
  for (const char* key : {"node", "nodes", "gpus", "fabric", "nccl"}) table.value(key);
  scenario.node = catalogue.node(*table.required("node", table.value("node")));
  scenario.nodes = table.integer("nodes").value_or(1);
  const std::int64_t whole = scenario.nodes * scenario.node.gpus;
  scenario.gpus = table.integer("gpus").value_or(whole);
  const bool part_of_a_node = scenario.nodes == 1 && scenario.gpus < scenario.node.gpus;
  if (scenario.gpus != whole && !part_of_a_node)
    table.fail("gpus",
               std::to_string(scenario.gpus) + " GPUs are not " + std::to_string(scenario.nodes) +
                   " nodes of " + std::to_string(scenario.node.gpus),
               "leave gpus out, or use fewer than a node's on one node");
  if (scenario.gpus > max_gpus)
    table.fail("nodes", "more than " + std::to_string(max_gpus) + " GPUs");
  static const std::string usual = "rail-optimized";
  const TomlValue* fabric = table.value("fabric");
  scenario.fabric = catalogue.fabric(fabric != nullptr ? *fabric : toml_text(usual, table.where()));
  const auto nccl = table.text("nccl");
  if (nccl)
    nccl_tuning_of(catalogue.directory() + "/nccl", *nccl, table.where("nccl"));  // is known
  scenario.nccl = nccl.value_or("");
  table.finish();
}

/// [nccl]: NCCL's own variables as keys, numbers with or without quotes.
void read_nccl(const TomlValue* table, const Catalogue& catalogue, Scenario& scenario) {
  if (table == nullptr) return;
  for (const TomlEntry& entry : *table->table()) {
    NcclVariable variable{entry.key, {}, entry.where};
    if (const auto* text = entry.value.text())
      variable.value = *text;
    else if (const auto* number = std::get_if<std::int64_t>(&entry.value.data))
      variable.value = std::to_string(*number);
    else if (const auto* flag = std::get_if<bool>(&entry.value.data))
      variable.value = *flag ? "true" : "false";
    else
      throw InputError(entry.where, "'" + entry.key + "' in [nccl] must be a string or a number",
                       "e.g. NCCL_ALGO = \"Ring,Tree\"");
    scenario.nccl_variables.push_back(std::move(variable));
  }
  scenario.nccl_overrides = nccl_overrides(scenario.nccl_variables);
  check_nccl_variables(scenario.nccl_variables,
                       nccl_tuning_of(catalogue.directory() + "/nccl", scenario.nccl));
}

/// A degree, or "best".
std::int64_t read_degree(TableReader& table, const char* key, bool& best) {
  const TomlValue* value = table.value(key);
  best = value != nullptr && value->text() != nullptr && *value->text() == "best";
  if (value != nullptr && value->text() != nullptr && !best)
    table.fail(key, "'" + std::string(key) + "' must be a degree or \"best\"");
  return best ? 1 : table.integer(key).value_or(1);
}

/// Layers of each part of the model, in model order.
std::vector<std::int64_t> read_stage_layers(TableReader& table) {
  std::vector<std::int64_t> out;
  const TomlValue* value = table.value("stage_layers");
  if (value == nullptr) return out;
  const auto refuse = [&] {
    table.fail("stage_layers", "'stage_layers' in [plan] must be an array of whole numbers",
               "layers of each pipeline stage, e.g. [7, 8, 8, 7]");
  };
  if (value->array() == nullptr) refuse();
  for (const TomlValue& item : *value->array()) {
    const auto* layers = std::get_if<std::int64_t>(&item.data);
    if (layers == nullptr) refuse();
    out.push_back(*layers);
  }
  return out;
}

void read_plan(TableReader& table, Scenario& scenario) {
  workloads::ParallelPlan& plan = scenario.plan;
  plan.data = table.choice("data", data_parallel_names).value_or(plan.data);
  plan.tensor = read_degree(table, "tensor", scenario.best_tensor);
  plan.sequence_parallel = table.flag("sequence_parallel").value_or(false);
  plan.context = table.integer("context").value_or(1);
  plan.shard_degree = table.integer("shard_degree").value_or(0);
  plan.virtual_stages = table.integer("virtual_stages").value_or(1);
  plan.stage_layers = read_stage_layers(table);
  plan.pipeline = read_degree(table, "pipeline", scenario.best_pipeline);
  plan.schedule = table.choice("schedule", schedule_names).value_or(plan.schedule);
  plan.recompute = table.choice("recompute", recompute_names).value_or(plan.recompute);
  plan.recompute_every = table.integer("recompute_every").value_or(1);
  scenario.reduce = table.choice("reduce", reduce_names);
  plan.prefetch = table.integer("prefetch", 0).value_or(plan.prefetch);
  scenario.plan_origin = table.where();
  for (const char* key :
       {"pipeline", "tensor", "context", "shard_degree", "virtual_stages", "stage_layers"})
    if (table.value(key) != nullptr) scenario.plan_origin = table.where(key);
  table.finish();
}

void read_batch(TableReader& table, Scenario& scenario) {
  scenario.batch_origin = table.where();
  const auto global = table.integer("global");
  const auto local = table.number("local");
  if (global && local)
    table.fail("local", "both 'local' and 'global' in [batch]", "global = local x GPUs: give one");
  if (!global && !local) table.missing("local", "or 'global': --local-batch, --global-batch");
  if (local) {
    const double sequences = *local * static_cast<double>(scenario.gpus);
    scenario.global_batch = std::llround(sequences);
    if (sequences > 1e12) table.fail("local", "'local' in [batch] is too large");
    if (scenario.global_batch < 1 ||
        std::abs(sequences - static_cast<double>(scenario.global_batch)) > 1e-9 * sequences)
      table.fail("local", "'local' in [batch] x " + std::to_string(scenario.gpus) +
                              " GPUs is no whole number of sequences");
    scenario.batch_origin = table.where("local");
  } else {
    scenario.global_batch = *global;
    scenario.batch_origin = table.where("global");
  }
  scenario.micro.micro_batch = table.integer("micro_batch");
  scenario.micro.micro_batches = table.integer("micro_batches");
  if (scenario.micro.micro_batch && scenario.micro.micro_batches)
    table.fail("micro_batches", "both 'micro_batch' and 'micro_batches' in [batch]",
               "one follows from the other: give at most one");
  table.finish();
}

void read_precision(TableReader& table, Scenario& scenario) {
  using workloads::Dtype;
  workloads::Precision& precision = scenario.precision;
  precision.compute = table.choice("compute", dtype_names).value_or(precision.compute);
  precision.gradient_reduce =
      table.choice("gradient_reduce", dtype_names).value_or(precision.gradient_reduce);
  precision.loss_scaling = table.flag("loss_scaling").value_or(precision.compute == Dtype::fp16);
  if (precision.gradient_reduce == Dtype::tf32 || precision.gradient_reduce == Dtype::fp8)
    table.fail("gradient_reduce",
               "gradients are not reduced in " + word_for(dtype_names, precision.gradient_reduce),
               "use fp32, bf16 or fp16");
  table.finish();
}

void read_calibration_table(TableReader& table, Scenario& scenario) {
  namespace fs = std::filesystem;
  const std::string where = table.where("tables");
  const fs::path folder = fs::path(where.substr(0, where.rfind(':'))).parent_path();
  if (const auto tables = table.texts("tables")) {
    scenario.tables.clear();
    for (const std::string& name : *tables) {
      std::error_code error;
      const fs::path beside = folder / name;
      const bool is_beside = name != "published" && name != "host" && fs::exists(beside, error);
      scenario.tables.push_back(is_beside ? beside.string() : name);
    }
    if (scenario.tables.empty())
      table.fail("tables", "'tables' in [calibration] is empty", "e.g. [\"published\"]");
  }
  if (const auto launch = table.text("launch")) {
    if (*launch != "software" && *launch != "measured")
      table.fail("launch", "'launch' in [calibration] cannot be '" + *launch + "'",
                 "\"software\" (its own launch_kernel) or \"measured\" (the tables')");
    scenario.measured_launch = *launch == "measured";
  }
  table.finish();
}

void read_run(TableReader& table, Scenario& scenario) {
  scenario.run.steps = table.choice("steps", steps_names).value_or(Steps::steady);
  scenario.run.seed = static_cast<std::uint64_t>(table.integer("seed", 0).value_or(1));
  const auto jitter = table.text("jitter");
  if (jitter && *jitter != "none")
    table.fail("jitter", "'jitter' in [run] cannot be '" + *jitter + "'",
               "[noise] says how kernels vary; \"none\" is the default");
  if (jitter && scenario.noise.on())
    table.fail("jitter", "'jitter' in [run] is \"none\" beside [noise]",
               "--without jitter runs a scenario without its noise");
  scenario.run.without = read_without(table);
  table.finish();
}

void read_collective(TableReader& table, Scenario& scenario) {
  CollectiveQuery query;
  query.kind = table.required("kind", table.choice("kind", collective_names));
  query.bytes = table.required("bytes", table.quantity<Bytes>("bytes"));
  query.dtype = table.choice("dtype", dtype_names).value_or(query.dtype);
  if (query.dtype == workloads::Dtype::tf32)
    table.fail("dtype", "nothing is sent as tf32", "use fp32");
  scenario.collective = query;
  table.finish();
}

/// Reads table `key` of the document, or an empty one where every key has a default.
template <class Read>
void read_part(TableReader& document, const char* key, Read read) {
  const TomlValue empty = toml_table(document.where());
  const TomlValue* value = document.table(key);
  TableReader table(value != nullptr ? *value : empty, key);
  read(table);
}

void read_model(TableReader& table, const Catalogue& catalogue, Scenario& scenario) {
  scenario.batch.sequence = table.integer("sequence").value_or(4096);
  if (scenario.batch.sequence > 100'000'000)
    table.fail("sequence", "'sequence' in [model] is too large");
  scenario.model = catalogue.model(table);
  table.finish();
}

void read_step(TableReader& document, const Catalogue& catalogue, Scenario& scenario) {
  read_part(document, "model", [&](auto& table) { read_model(table, catalogue, scenario); });
  read_part(document, "plan", [&](auto& table) { read_plan(table, scenario); });
  read_part(document, "batch", [&](auto& table) { read_batch(table, scenario); });
  read_part(document, "precision", [&](auto& table) { read_precision(table, scenario); });
  read_part(document, "software", [&](auto& table) {
    scenario.software = catalogue.software(table);
    table.finish();
  });
}

}  // namespace

Scenario read_scenario(const TomlValue& written, const Catalogue& catalogue) {
  const TomlValue source = with_framework(written);
  TableReader document(source, "");
  Scenario scenario;
  scenario.software_by_default = framework_by_default(source);
  scenario.origin = source.where;
  scenario.title = document.text("title").value_or("");
  scenario.tables = {"published"};
  // All top-level names are asked for first: a misspelt [modle] is an unknown key, not a missing
  // one.
  for (const char* key : {"model", "cluster", "nccl", "plan", "batch", "precision", "software",
                          "calibration", "noise", "run", "collective"})
    document.table(key);
  document.finish();
  read_part(document, "cluster", [&](auto& table) { read_cluster(table, catalogue, scenario); });
  read_part(document, "calibration", [&](auto& table) { read_calibration_table(table, scenario); });
  read_part(document, "noise", [&](auto& table) { read_noise(table, scenario); });
  read_part(document, "run", [&](auto& table) { read_run(table, scenario); });
  if (const TomlValue* collective = document.table("collective")) {
    TableReader table(*collective, "collective");
    read_collective(table, scenario);
    for (const char* key : {"model", "plan", "batch", "precision", "software", "noise"})
      if (document.table(key) != nullptr)
        document.fail(key, "[" + std::string(key) + "] beside [collective]",
                      "a scenario asks for a training step or for one collective");
  } else {
    read_step(document, catalogue, scenario);
  }
  if (scenario.nccl.empty()) {
    scenario.nccl = default_nccl(scenario.software, scenario.node.gpu);
    nccl_tuning_of(catalogue.directory() + "/nccl", scenario.nccl, scenario.origin);  // is known
  }
  read_nccl(document.table("nccl"), catalogue, scenario);
  if (scenario.collective) return scenario;
  if (scenario.best_tensor || scenario.best_pipeline) return scenario;
  const auto [tensor, pipeline] = std::pair(scenario.plan.tensor, scenario.plan.pipeline);
  return with_degrees(std::move(scenario), tensor, pipeline);
}

}  // namespace stepcast::sim
