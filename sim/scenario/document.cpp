// The way back: Scenario to TOML.
#include <utility>

#include "sim/scenario/failure_keys.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/goal_file.hpp"
#include "sim/scenario/member_writer.hpp"
#include "sim/scenario/noise_keys.hpp"

namespace stepcast::sim {
namespace {

TomlValue named(const std::string& name) {
  TomlValue table = toml_table({});
  table.set("name", {name, {}});
  return table;
}

TomlValue cluster_table(const Scenario& scenario) {
  const topology::NodeSpec& node = scenario.node;
  TomlValue out = written(toml_table({}), [&](auto&& visit) { visit_cluster(scenario, visit); });
  out.set("node", written(named(node.name), [&](auto&& visit) { visit_node(node, visit); }));
  out.find("node")->set(
      "gpu", written(named(node.gpu.name), [&](auto&& visit) { visit_gpu(node.gpu, visit); }));
  out.set("fabric", written(named(scenario.fabric.name),
                            [&](auto&& visit) { visit_fabric(scenario.fabric, visit); }));
  return out;
}

TomlValue model_table(const Scenario& scenario) {
  return written(named(scenario.model.name), [&](auto&& visit) {
    visit_model_use(scenario, visit);
    visit_model(scenario.model, visit);
  });
}

TomlValue software_table(const workloads::Software& software) {
  return written(toml_table({}), [&](auto&& visit) {
    visit_software_name(software, visit);
    visit_software(software, visit);
  });
}

TomlValue noise_table(const Noise& noise) {
  TomlValue out = written(toml_table({}), [&](auto&& visit) { visit_noise(noise, visit); });
  if (!noise.stragglers.empty()) out.set("straggler", stragglers_list(noise));
  return out;
}

/// An order from a file is that file's name.
TomlValue plan_table(Scenario told) {
  const std::string schedule = schedule_word(told.plan);
  told.plan.schedule = workloads::Schedule::one_f_one_b;
  TomlValue out = written(toml_table({}), [&](auto&& visit) { visit_plan(told, visit); });
  out.set("schedule", {schedule, {}});
  return out;
}

void add_step(TomlValue& document, const Scenario& scenario) {
  const TomlValue empty = toml_table({});
  document.set("model", model_table(scenario));
  Scenario told = scenario;
  const bool open = !scenario.open.empty();  // so is who reduces when
  if (!open) told.reduce = scenario.plan.reduce;
  if (!open) told.stage_layers = scenario.plan.stage_layers;
  document.set("plan", plan_table(told));
  if (scenario.model.experts.count > 0)
    document.set("routing", written(empty, [&](auto&& visit) {
                   visit_routing(scenario.plan.routing, visit);
                 }));
  const BatchKeys batch{scenario.global_batch, {}, scenario.micro};
  document.set("batch", written(empty, [&](auto&& visit) { visit_batch(batch, visit); }));
  for (const std::string& key : scenario.open) set_path(document, key, toml_text("best", {}));
  document.set("precision",
               written(empty, [&](auto&& visit) { visit_precision(scenario.precision, visit); }));
  document.set("software", software_table(scenario.software));
  if (scenario.noise.on()) document.set("noise", noise_table(scenario.noise));
  add_goal_tables(document, scenario);
  if (scenario.failures.on) document.set("failures", failures_table(scenario.failures));
}

}  // namespace

TomlValue resolved_document(const Scenario& scenario) {
  const TomlValue empty = toml_table({});
  TomlValue document = empty;
  if (!scenario.title.empty()) document.set("title", {scenario.title, {}});
  if (scenario.collective)
    document.set("collective", written(empty, [&](auto&& visit) {
                   visit_collective(*scenario.collective, visit);
                 }));
  else
    add_step(document, scenario);
  document.set("cluster", cluster_table(scenario));
  if (!scenario.nccl_variables.empty()) {
    document.set("nccl", empty);
    for (const NcclVariable& variable : scenario.nccl_variables)
      document.find("nccl")->set(variable.name, {variable.value, {}});
  }
  document.set("calibration",
               written(empty, [&](auto&& visit) { visit_calibration(scenario, visit); }));
  document.set("run", written(empty, [&](auto&& visit) { visit_run(scenario.run, visit); }));
  return document;
}

TomlValue plan_document(const Scenario& scenario) {
  Scenario run = scenario;
  run.plan.shard_degree = run.plan.data == workloads::DataParallel::ddp ? 1 : run.plan.shards();
  run.reduce = run.plan.reduce;
  run.stage_layers = run.plan.stage_layers;
  const BatchKeys batch{
      run.global_batch, local_batch(run), {run.batch.micro_batch, run.batch.micro_batches}};
  TomlValue out = written(plan_table(run), [&](auto&& visit) {
    visit_batch(batch, visit);
    visit_model_use(run, visit);
    visit_precision(run.precision, visit);
    visit_software_name(run.software, visit);
  });
  out.set("data_degree", {run.plan.data_degree, {}});
  // Names that say of themselves what the table's name says in a file.
  for (TomlEntry& entry : *out.table()) {
    if (entry.key == "global" || entry.key == "local") entry.key += "_batch";
    if (entry.key == "version") entry.key = "framework_version";
  }
  return out;
}

}  // namespace stepcast::sim
