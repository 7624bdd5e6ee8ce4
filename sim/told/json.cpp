#include "sim/told/json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "sim/files/indented_json.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/names.hpp"
#include "sim/scenario/assumptions.hpp"
#include "sim/scenario/file.hpp"
#include "sim/told/collective.hpp"
#include "sim/told/goodput.hpp"
#include "sim/told/metrics.hpp"
#include "workloads/plan/lora.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

Json cluster_json(const Scenario& scenario) {
  return {{"node", scenario.node.name},
          {"nodes", scenario.nodes},
          {"gpus_per_node", scenario.node.gpus},
          {"fabric", scenario.fabric.name},
          {"oversubscription", scenario.fabric.oversubscription},
          {"nccl", scenario.nccl}};
}

Json value_json(const TomlValue& value) {
  if (const auto* text = value.text()) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return *integer;
  if (const auto* number = std::get_if<double>(&value.data)) return *number;
  if (const auto* flag = std::get_if<bool>(&value.data)) return *flag;
  if (const auto* items = value.array()) {
    Json out = Json::array();
    for (const TomlValue& item : *items) out.push_back(value_json(item));
    return out;
  }
  Json out = Json::object();
  for (const TomlEntry& entry : *value.table()) out[entry.key] = value_json(entry.value);
  return out;
}

Json plan_json(const Scenario& scenario) {
  Json out = value_json(plan_document(scenario));
  out["stage_layers"] = scenario.plan.stage_layers;  // also where they are not given
  return out;
}

Json shares_json(const ProvenanceShares& shares) {
  Json out = Json::object();
  for (std::size_t i = 0; i < shares.size(); ++i)
    out[std::string(name_of(static_cast<Provenance>(i)))] = shares[i];
  return out;
}

/// The numbers of metrics(), "a.b" as a member of object "a"; counts as integers.
void add_numbers(Json& out, const Answer& answer) {
  for (const Metric& metric : metrics()) {
    const auto value = value_of(metric, answer);
    if (!value) continue;
    const bool count = metric.unit.empty() && metric.key != "mfu" && metric.key != "p_fits";
    const Json number = count ? Json(static_cast<std::int64_t>(*value)) : Json(*value);
    const std::string key(metric.key);
    if (const std::size_t dot = key.find('.'); dot != std::string::npos)
      out[key.substr(0, dot)][key.substr(dot + 1)] = number;
    else
      out[key] = number;
    if (key == "mfu")
      out["mfu_convention"] = flop_convention(std::get<StepReport>(answer).scenario.model);
    if (key != "memory_gib_per_gpu") continue;
    Json parts = Json::object();
    for (const workloads::MemoryPart& part : std::get<StepReport>(answer).memory.parts)
      parts[part.name] = static_cast<double>(part.bytes.value) / (1 << 30);
    out["memory_parts_gib"] = parts;
  }
}

/// Whether "plan", "cluster" or the result itself says what the key is.
bool shown_elsewhere(const Scenario& scenario, std::string_view path) {
  for (const char* table : {"plan.", "batch.", "precision.", "collective."})
    if (path.starts_with(table)) return true;
  if (path == "cluster.gpus") return scenario.gpus == scenario.nodes * scenario.node.gpus;
  for (const char* key :
       {"model.sequence", "cluster.nodes", "cluster.gpus_per_domain", "cluster.nccl"})
    if (path == key) return true;
  return false;
}

/// What the scenario says other than the catalogue and the defaults.
void add_changes(Json& out, const Scenario& scenario) {
  std::vector<std::string> paths = scenario.changed;
  std::erase_if(paths, [&](const std::string& path) { return shown_elsewhere(scenario, path); });
  if (paths.empty()) return;
  const TomlValue document = resolved_document(scenario);
  for (const std::string& path : paths)
    if (const TomlValue* value = find_path(document, path))
      out["changed"][path] = value_json(*value);
}

/// Noise and what was left out; nothing for an ordinary run.
void add_conditions(Json& out, const StepReport& report) {
  const Noise& noise = report.scenario.noise;
  const Ablation& without = report.scenario.run.without;
  if (noise.on() && !without.jitter)
    out["noise"] = {
        {"kernel_sigma", noise.kernel_sigma}, {"gpu_sigma", noise.gpu_sigma},
        {"pace_sigma", noise.pace_sigma},     {"stragglers", noise.stragglers.size()},
        {"seed", report.scenario.run.seed},   {"step_deviation_s", seconds(report.step_deviation)}};
  if (without.any()) out["without"] = words_of(without);
}

/// What the ends of error bars rest on; nothing where there are none.
void add_confidence(Json& out, const std::optional<ErrorBar>& bar,
                    const std::optional<ErrorBar>& memory = {}) {
  if (!bar) return;
  Json& told = out["confidence"];
  told = {{"level", bar->level},
          {"errors_of", bar->kind},
          {"sources", bar->sources},
          {"widened", bar->widened},
          {"own_runs", bar->own_runs}};
  if (!memory) return;
  told["memory_sources"] = memory->sources;
  told["memory_assured"] = memory->assured;
}

Json step_json(const StepReport& report, const Answer& answer) {
  Json out;
  if (!report.scenario.title.empty()) out["title"] = report.scenario.title;
  out["model"] = report.scenario.model.name;
  if (workloads::adapted(report.scenario.model))
    out["trained_parameters"] = workloads::adapter_parameters(report.scenario.model);
  out["gpu"] = report.scenario.node.gpu.name;
  add_numbers(out, answer);
  out["provenance"] = {{"kernels", shares_json(report.kernel_provenance)},
                       {"network", shares_json(report.network_provenance)}};
  add_confidence(out, report.step_bar, report.memory_bar);
  if (const auto& next = report.runner_up) {
    out["runner_up"] = {{"plan", next->plan}, {"takes_s", seconds(next->step_time)}};
    if (next->slower) out["runner_up"]["slower"] = *next->slower;
  }
  if (report.goodput) out["failures"] = goodput_json(report);
  out["plan"] = plan_json(report.scenario);
  out["cluster"] = cluster_json(report.scenario);
  add_changes(out, report.scenario);
  add_conditions(out, report);
  out["simulated_ranks"] = report.simulated_ranks;
  out["events"] = report.events;
  if (auto assumed = assumptions(report.scenario); !assumed.empty())
    out["assumptions"] = std::move(assumed);
  out["warnings"] = report.warnings;
  return out;
}

Json collective_json(const CollectiveReport& report, const Answer& answer) {
  Json out;
  if (!report.scenario.title.empty()) out["title"] = report.scenario.title;
  expects(report.scenario.collective.has_value(), "a collective report has its query");
  out["collective"] = word_for(collective_names, report.scenario.collective->kind);
  out["bytes"] = report.scenario.collective->bytes.value;
  out["dtype"] = word_for(dtype_names, report.scenario.collective->dtype);
  out["gpu"] = report.scenario.node.gpu.name;
  add_numbers(out, answer);
  out["algorithm"] = name_of(report.time.algorithm);
  out["protocol"] = name_of(report.time.protocol);
  out["provenance"] = name_of(report.time.provenance);
  add_confidence(out, report.bar);
  out["cluster"] = cluster_json(report.scenario);
  add_changes(out, report.scenario);
  if (!report.warnings.empty()) out["warnings"] = report.warnings;
  if (report.explanation) out["explanation"] = as_json(explanation_of(report));
  if (report.stepped) out["stepped"] = as_json(told_of(*report.stepped));
  return out;
}

Json refused_json(const Refused& refused) {
  Json out;
  out["refused"] = refused.reason;
  if (refused.over) out["memory_over_gib"] = static_cast<double>(refused.over->value) / (1 << 30);
  if (!refused.scenario.title.empty()) out["title"] = refused.scenario.title;
  out["model"] = refused.scenario.model.name;
  out["gpu"] = refused.scenario.node.gpu.name;
  out["gpus"] = refused.scenario.gpus;
  out["nodes"] = refused.scenario.nodes;
  out["plan"] = plan_json(refused.scenario);
  out["cluster"] = cluster_json(refused.scenario);
  add_changes(out, refused.scenario);
  return out;
}

Json answer_json(const Answer& answer) {
  if (const auto* step = std::get_if<StepReport>(&answer)) return step_json(*step, answer);
  if (const auto* one = std::get_if<CollectiveReport>(&answer))
    return collective_json(*one, answer);
  return refused_json(std::get<Refused>(answer));
}

std::string text_of(const Json& json) {
  // A byte that is no UTF-8 in a title must not end the program.
  return json_text(json, 2);
}

}  // namespace

std::string to_json(const Answer& answer) { return text_of(answer_json(answer)); }

namespace {

std::string line_of(Json json, const SweepPoint& point) {
  if (!point.empty()) {
    Json swept = Json::object();
    for (const Setting& setting : point) swept[setting.path] = value_json(setting.value);
    json["sweep"] = swept;
  }
  return json_text(json);
}

}  // namespace

std::string point_json(const Answer& answer, const SweepPoint& point) {
  return line_of(answer_json(answer), point);
}

std::string unanswered_json(const char* word, const std::string& reason, const SweepPoint& point) {
  return line_of(Json{{word, reason}}, point);
}

void write_json(const Results& results, const std::function<void(std::string_view)>& write) {
  const PointRows& rows = results.rows;
  if (!results.study.is_sweep) {
    expects(rows.size() == 1, "a single run has one point");
    write(rows.has(0) ? indented_json(rows.json(0), 0) : "{\"interrupted\": true}");
    return;
  }
  write("{\n");
  if (const TomlValue* title = results.study.base.find("title"); title && title->text())
    write("  \"title\": " + text_of(*title->text()) + ",\n");
  write("  \"points\": [");
  bool any = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows.has(i)) continue;
    write((any ? ",\n    " : "\n    ") + indented_json(rows.json(i), 4));
    any = true;
  }
  write(any ? "\n  ]" : "]");
  write(results.interrupted ? ",\n  \"interrupted\": true\n}" : "\n}");
}

std::string to_json(const Results& results) {
  std::string out;
  write_json(results, [&](std::string_view text) { out += text; });
  return out;
}

std::string error_json(int exit_code, const std::string& where, const std::string& message,
                       const std::string& hint) {
  Json error{{"code", exit_code}};
  if (!where.empty()) error["where"] = where;
  error["message"] = message;
  if (!hint.empty()) error["hint"] = hint;
  return text_of(Json{{"error", error}});
}

}  // namespace stepcast::sim
