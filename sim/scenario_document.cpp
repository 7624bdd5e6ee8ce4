// The way back: Scenario to TOML.
#include <utility>

#include "engine/units_text.hpp"
#include "sim/members.hpp"
#include "sim/noise_keys.hpp"
#include "sim/scenario_file.hpp"

namespace stepcast::sim {
namespace {

/// Writes the members of a catalogue value (see members.hpp) into a table.
class MemberWriter {
 public:
  explicit MemberWriter(TomlValue& table) : table_(table) {}

  template <class T, class... Choices>
  void needs(std::string_view key, const T& member, const Choices&... choices) {
    write(key, member, choices...);
  }
  template <class T, class... Choices>
  void may(std::string_view key, const T& member, const Choices&... choices) {
    write(key, member, choices...);
  }
  void may_bytes(std::string_view key, std::int64_t member) { write(key, Bytes(member)); }

 private:
  template <class E, class Choices>
  void write(std::string_view key, const E& member, const Choices& choices) {
    put(key, word_for(choices, member));
  }
  template <class Choices>
  void write(std::string_view key, const workloads::DataKinds& kinds, const Choices& choices) {
    TomlValue::Array words;
    for (const auto& [name, kind] : choices)
      if (kinds.has(kind)) words.push_back(toml_text(std::string(name), {}));
    put(key, std::move(words));
  }
  template <class Q>
  void write(std::string_view key, const Q& member) {
    put(key, to_exact_text(member));
  }
  void write(std::string_view key, const std::int64_t& member) { put(key, member); }
  void write(std::string_view key, const double& member) { put(key, member); }
  void write(std::string_view key, const bool& member) { put(key, member); }
  void write(std::string_view key, const std::string& member) {
    if (!member.empty()) put(key, member);
  }
  void write(std::string_view key, const std::vector<std::vector<std::int64_t>>& rows) {
    TomlValue::Array out;
    for (const auto& row : rows) {
      TomlValue::Array cells;
      for (const std::int64_t cell : row) cells.push_back({cell, {}});
      out.push_back({std::move(cells), {}});
    }
    if (!out.empty()) put(key, std::move(out));
  }
  template <class T>
  void put(std::string_view key, T value) {
    table_.set(key, {std::move(value), {}});
  }

  TomlValue& table_;
};

template <class T>
void put(TomlValue& table, std::string_view key, T value) {
  table.set(key, {std::move(value), {}});
}

TomlValue named(const std::string& name) {
  TomlValue table = toml_table({});
  put(table, "name", name);
  return table;
}

TomlValue cluster_table(const Scenario& scenario) {
  TomlValue gpu = named(scenario.node.gpu.name);
  visit_gpu(scenario.node.gpu, MemberWriter(gpu));
  TomlValue node = named(scenario.node.name);
  visit_node(scenario.node, MemberWriter(node));
  node.set("gpu", std::move(gpu));
  TomlValue fabric = named(scenario.fabric.name);
  visit_fabric(scenario.fabric, MemberWriter(fabric));

  TomlValue cluster = toml_table({});
  put(cluster, "nodes", scenario.nodes);
  put(cluster, "gpus", scenario.gpus);
  put(cluster, "nccl", scenario.nccl);
  cluster.set("node", std::move(node));
  cluster.set("fabric", std::move(fabric));
  return cluster;
}

TomlValue model_table(const Scenario& scenario) {
  TomlValue model = named(scenario.model.name);
  put(model, "sequence", scenario.batch.sequence);
  visit_model(scenario.model, MemberWriter(model));
  return model;
}

TomlValue plan_table(const Scenario& scenario) {
  const workloads::ParallelPlan& plan = scenario.plan;
  const std::string best = "best";
  TomlValue table = toml_table({});
  put(table, "data", word_for(data_parallel_names, plan.data));
  if (scenario.best_tensor)
    put(table, "tensor", best);
  else
    put(table, "tensor", plan.tensor);
  put(table, "sequence_parallel", plan.sequence_parallel);
  if (scenario.best_pipeline)
    put(table, "pipeline", best);
  else
    put(table, "pipeline", plan.pipeline);
  if (plan.context > 1) put(table, "context", plan.context);
  if (plan.shard_degree > 0) put(table, "shard_degree", plan.shard_degree);
  if (plan.virtual_stages > 1) put(table, "virtual_stages", plan.virtual_stages);
  TomlValue::Array layers;
  for (const std::int64_t n : plan.stage_layers) layers.push_back({n, {}});
  if (!layers.empty()) put(table, "stage_layers", std::move(layers));
  put(table, "schedule", word_for(schedule_names, plan.schedule));
  put(table, "recompute", word_for(recompute_names, plan.recompute));
  if (plan.recompute_every > 1) put(table, "recompute_every", plan.recompute_every);
  const bool open = scenario.best_tensor || scenario.best_pipeline;  // so is who reduces when
  if (!open || scenario.reduce)
    put(table, "reduce", word_for(reduce_names, scenario.reduce.value_or(plan.reduce)));
  put(table, "prefetch", plan.prefetch);
  return table;
}

TomlValue batch_table(const Scenario& scenario) {
  TomlValue table = toml_table({});
  put(table, "global", scenario.global_batch);
  if (scenario.micro.micro_batch) put(table, "micro_batch", *scenario.micro.micro_batch);
  if (scenario.micro.micro_batches) put(table, "micro_batches", *scenario.micro.micro_batches);
  return table;
}

TomlValue precision_table(const Scenario& scenario) {
  TomlValue table = toml_table({});
  put(table, "compute", word_for(dtype_names, scenario.precision.compute));
  put(table, "gradient_reduce", word_for(dtype_names, scenario.precision.gradient_reduce));
  put(table, "loss_scaling", scenario.precision.loss_scaling);
  return table;
}

TomlValue software_table(const Scenario& scenario) {
  TomlValue table = toml_table({});
  put(table, "framework", scenario.software.framework);
  put(table, "version", scenario.software.version);
  visit_software(scenario.software, MemberWriter(table));
  return table;
}

TomlValue collective_table(const CollectiveQuery& query) {
  TomlValue table = toml_table({});
  put(table, "kind", word_for(collective_names, query.kind));
  put(table, "bytes", to_exact_text(query.bytes));
  put(table, "dtype", word_for(dtype_names, query.dtype));
  return table;
}

TomlValue run_table(const Scenario& scenario) {
  TomlValue table = toml_table({});
  put(table, "steps", word_for(steps_names, scenario.run.steps));
  put(table, "seed", static_cast<std::int64_t>(scenario.run.seed));
  TomlValue::Array without;
  for (const std::string& word : words_of(scenario.run.without))
    without.push_back(toml_text(word, {}));
  if (!without.empty()) put(table, "without", std::move(without));
  return table;
}

}  // namespace

TomlValue resolved_document(const Scenario& scenario) {
  TomlValue document = toml_table({});
  if (!scenario.title.empty()) put(document, "title", scenario.title);
  if (scenario.collective) {
    document.set("collective", collective_table(*scenario.collective));
  } else {
    document.set("model", model_table(scenario));
    document.set("plan", plan_table(scenario));
    document.set("batch", batch_table(scenario));
    document.set("precision", precision_table(scenario));
    document.set("software", software_table(scenario));
    if (scenario.noise.on()) document.set("noise", noise_table(scenario.noise));
  }
  document.set("cluster", cluster_table(scenario));
  if (!scenario.nccl_variables.empty()) {
    TomlValue nccl = toml_table({});
    for (const NcclVariable& variable : scenario.nccl_variables)
      put(nccl, variable.name.c_str(), variable.value);
    document.set("nccl", std::move(nccl));
  }
  TomlValue calibration = toml_table({});
  TomlValue::Array tables;
  for (const std::string& name : scenario.tables) tables.push_back(toml_text(name, {}));
  put(calibration, "tables", std::move(tables));
  if (scenario.measured_launch) put(calibration, "launch", std::string("measured"));
  document.set("calibration", std::move(calibration));
  document.set("run", run_table(scenario));
  return document;
}

}  // namespace stepcast::sim
