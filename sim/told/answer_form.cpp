#include "sim/told/answer_form.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/scenario/assumptions.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "sim/told/collective.hpp"
#include "sim/told/goodput.hpp"
#include "sim/told/metrics.hpp"
#include "workloads/plan/lora.hpp"

namespace stepcast::sim {

using Json = nlohmann::ordered_json;

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

std::string meaning_of(std::string_view key) {
  const Metric* known = find_explanation(key);
  expects(known != nullptr, "a key of an answer is explained");
  return std::string(known->meaning);
}

namespace {

const Form<Scenario>& cluster_form() {
  using S = const Scenario&;
  static const Form<Scenario> form =
      Form<Scenario>("cluster")
          .has("node", "Its name in the catalogue.", [](S s) { return s.node.name; })
          .has("nodes", "How many.", [](S s) { return s.nodes; })
          .has("gpus_per_node", "GPUs of a node.", [](S s) { return s.node.gpus; })
          .has("fabric", "Its name in the catalogue.", [](S s) { return s.fabric.name; })
          .has("oversubscription", "Of the fabric: 1 is none.",
               [](S s) { return s.fabric.oversubscription; })
          .has("nccl", "Its version.", [](S s) { return s.nccl; });
  return form;
}

Json plan_json(const Scenario& scenario) {
  Json out = value_json(plan_document(scenario));
  out["stage_layers"] = scenario.plan.stage_layers;  // also where they are not given
  return out;
}

/// Of the members of a plan that every plan has, their types.
Json plan_schema() {
  Json out = open_object();
  const TomlValue plan = plan_document(Scenario{});
  for (const TomlEntry& entry : *plan.table()) {
    Json type;
    if (entry.value.text() != nullptr)
      type = type_schema("string");
    else if (std::holds_alternative<std::int64_t>(entry.value.data))
      type = type_schema("integer");
    else if (std::holds_alternative<bool>(entry.value.data))
      type = type_schema("boolean");
    else
      continue;
    const auto key = std::ranges::find(scenario_keys(), "plan." + entry.key, &ScenarioKey::path);
    if (key != scenario_keys().end())
      type = form_detail::annotated(std::move(type), key->key.help, "");
    out["properties"][entry.key] = std::move(type);
  }
  return out;
}

const Form<ProvenanceShares>& shares_form() {
  static const Form<ProvenanceShares> form = [] {
    Form<ProvenanceShares> out("shares");
    for (std::size_t i = 0; i < ProvenanceShares{}.size(); ++i)
      out.has(std::string(name_of(static_cast<Provenance>(i))), "",
              [i](const ProvenanceShares& shares) { return shares[i]; });
    return out;
  }();
  return form;
}

Json memory_parts_json(const StepReport& report) {
  Json parts = Json::object();
  for (const workloads::MemoryPart& part : report.memory.parts)
    parts[part.name] = static_cast<double>(part.bytes.value) / (1 << 30);
  return parts;
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
std::optional<Json> changes_json(const Scenario& scenario) {
  std::vector<std::string> paths = scenario.changed;
  std::erase_if(paths, [&](const std::string& path) { return shown_elsewhere(scenario, path); });
  if (paths.empty()) return std::nullopt;
  const TomlValue document = resolved_document(scenario);
  Json out;
  for (const std::string& path : paths)
    if (const TomlValue* value = find_path(document, path)) out[path] = value_json(*value);
  return out.is_null() ? std::nullopt : std::optional(out);
}

/// Of a run with noise that was not taken away.
const Form<StepReport>& noise_form() {
  using S = const StepReport&;
  static const Form<StepReport> form =
      Form<StepReport>("noise")
          .has("kernel_sigma", "Of the logarithm of a kernel's time.",
               [](S s) { return s.scenario.noise.kernel_sigma; })
          .has("gpu_sigma", "Likewise from GPU to GPU.",
               [](S s) { return s.scenario.noise.gpu_sigma; })
          .has("pace_sigma", "Likewise from step to step.",
               [](S s) { return s.scenario.noise.pace_sigma; })
          .has("stragglers", "GPUs that are slower by name.",
               [](S s) { return s.scenario.noise.stragglers.size(); })
          .has("seed", "Of the draws.", [](S s) { return s.scenario.run.seed; })
          .has("step_deviation_s", "Standard deviation over steps.",
               [](S s) { return seconds(s.step_deviation); });
  return form;
}

struct Bars {
  const ErrorBar* bar;
  const ErrorBar* memory = nullptr;
};

/// What the ends of error bars rest on.
const Form<Bars>& bars_form() {
  using B = const Bars&;
  static const Form<Bars> form =
      Form<Bars>("confidence")
          .has("level", "So many measurements lie between both ends.",
               [](B b) { return b.bar->level; })
          .has("errors_of", "Of what the errors are.", [](B b) { return b.bar->kind; })
          .has("sources", "Published sources with such errors.", [](B b) { return b.bar->sources; })
          .has("widened", "By so much beyond them, since nothing alike was measured.",
               [](B b) { return b.bar->widened; })
          .has("own_runs", "Own runs that the bar rests on.", [](B b) { return b.bar->own_runs; })
          .has("memory_sources", "Sources of memory's bar.",
               [](B b) { return b.memory ? std::optional(b.memory->sources) : std::nullopt; })
          .has("memory_assured", "Whether memory's bar rests on enough of them.",
               [](B b) { return b.memory ? std::optional(b.memory->assured) : std::nullopt; });
  return form;
}

std::optional<Bars> bars_of(const std::optional<ErrorBar>& bar,
                            const std::optional<ErrorBar>& memory = {}) {
  if (!bar) return std::nullopt;
  return Bars{&*bar, memory ? &*memory : nullptr};
}

const Form<RunnerUp>& runner_up_form() {
  using R = const RunnerUp&;
  static const Form<RunnerUp> form =
      Form<RunnerUp>("runner_up")
          .has("plan", "In words.", [](R r) { return r.plan; })
          .has("takes_s", "Its step.", [](R r) { return seconds(r.step_time); })
          .has("slower", "How likely it is the slower one when both are measured.",
               [](R r) { return r.slower; });
  return form;
}

SchemaOf any_object() {
  return [](Definitions&) { return open_object(); };
}

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}
std::optional<std::vector<std::string>> unless_empty(std::vector<std::string> list) {
  return list.empty() ? std::nullopt : std::optional(std::move(list));
}

void add_numbers(Form<StepReport>& form) {
  using S = const StepReport&;
  for (const Metric& metric : metrics()) {
    if (metric.of_step == nullptr) continue;
    add_metric<StepReport>(form, metric, metric.of_step);
    if (metric.key == "mfu")
      form.has("mfu_convention", meaning_of("mfu_convention"),
               [](S s) { return std::string(flop_convention(s.scenario.model)); });
    if (metric.key == "memory_gib_per_gpu")
      form.json(
          "memory_parts_gib", meaning_of("memory_parts_gib"),
          [](Definitions&) {
            return form_detail::annotated(open_object(type_schema("number")), "", "GiB");
          },
          memory_parts_json);
  }
}

Form<StepReport> made_step_form() {
  using S = const StepReport&;
  Form<StepReport> out("step");
  out.has("title", meaning_of("title"), [](S s) { return unless_empty(s.scenario.title); })
      .has("model", meaning_of("model"), [](S s) { return s.scenario.model.name; })
      .has("trained_parameters", meaning_of("trained_parameters"),
           [](S s) {
             return workloads::adapted(s.scenario.model)
                        ? std::optional(workloads::adapter_parameters(s.scenario.model))
                        : std::nullopt;
           })
      .has("gpu", meaning_of("gpu"), [](S s) { return s.scenario.node.gpu.name; });
  add_numbers(out);
  out.object(
         "provenance/kernels", "Shares of their time.", shares_form(),
         [](S s) -> const auto& { return s.kernel_provenance; })
      .object(
          "provenance/network", "Shares of the collectives' time.", shares_form(),
          [](S s) -> const auto& { return s.network_provenance; })
      .object("confidence", meaning_of("confidence"), bars_form(),
              [](S s) { return bars_of(s.step_bar, s.memory_bar); })
      .object(
          "runner_up", meaning_of("runner_up"), runner_up_form(),
          [](S s) -> const auto& { return s.runner_up; })
      .object("failures", meaning_of("failures"), failures_form(),
              [](S s) { return s.goodput ? &s : nullptr; })
      .json(
          "plan", meaning_of("plan"), [](Definitions&) { return plan_schema(); },
          [](S s) { return plan_json(s.scenario); })
      .object("cluster", meaning_of("cluster"), cluster_form(),
              [](S s) -> const Scenario& { return s.scenario; })
      .json("changed", meaning_of("changed"), any_object(),
            [](S s) { return changes_json(s.scenario); })
      .object("noise", "Noise that the step was simulated with.", noise_form(),
              [](S s) {
                const bool on = s.scenario.noise.on() && !s.scenario.run.without.jitter;
                return on ? &s : nullptr;
              })
      .has("without", "What was left out, for comparison.",
           [](S s) {
             const Ablation& without = s.scenario.run.without;
             return without.any() ? std::optional(words_of(without)) : std::nullopt;
           })
      .has("simulated_ranks", meaning_of("simulated_ranks"), [](S s) { return s.simulated_ranks; })
      .has("events", meaning_of("events"), [](S s) { return s.events; })
      .has("assumptions", meaning_of("assumptions"),
           [](S s) { return unless_empty(assumptions(s.scenario)); })
      .has("warnings", meaning_of("warnings"), [](S s) { return s.warnings; });
  return out;
}

const Form<StepReport>& step_form() {
  static const Form<StepReport> form = made_step_form();
  return form;
}

const CollectiveQuery& query_of(const CollectiveReport& report) {
  expects(report.scenario.collective.has_value(), "a collective report has its query");
  return *report.scenario.collective;
}

Form<CollectiveReport> made_collective_form() {
  using C = const CollectiveReport&;
  Form<CollectiveReport> out("collective");
  out.has("title", meaning_of("title"), [](C c) { return unless_empty(c.scenario.title); })
      .has("collective", meaning_of("collective"),
           [](C c) { return std::string(word_for(collective_names, query_of(c).kind)); })
      .has("bytes", meaning_of("bytes"), [](C c) { return query_of(c).bytes.value; })
      .has("dtype", meaning_of("dtype"),
           [](C c) { return std::string(word_for(dtype_names, query_of(c).dtype)); })
      .has("gpu", meaning_of("gpu"), [](C c) { return c.scenario.node.gpu.name; });
  for (const Metric& metric : metrics())
    if (metric.of_collective != nullptr && metric.key != "bytes")
      add_metric<CollectiveReport>(out, metric, metric.of_collective);
  out.has("algorithm", meaning_of("algorithm"),
          [](C c) { return std::string(name_of(c.time.algorithm)); })
      .has("protocol", meaning_of("protocol"),
           [](C c) { return std::string(name_of(c.time.protocol)); })
      .has("provenance", "Where the time comes from.",
           [](C c) { return std::string(name_of(c.time.provenance)); })
      .object("confidence", meaning_of("confidence"), bars_form(),
              [](C c) { return bars_of(c.bar); })
      .object("cluster", meaning_of("cluster"), cluster_form(),
              [](C c) -> const Scenario& { return c.scenario; })
      .json("changed", meaning_of("changed"), any_object(),
            [](C c) { return changes_json(c.scenario); })
      .has("warnings", meaning_of("warnings"), [](C c) { return unless_empty(c.warnings); })
      .object("explanation", "What stands below the time (--explain).", explanation_form(),
              [](C c) { return c.explanation ? &c : nullptr; })
      .object(
          "stepped", "The same, chunk by chunk (--stepped).", stepped_form(),
          [](C c) -> const auto& { return c.stepped; });
  return out;
}

const Form<CollectiveReport>& collective_form() {
  static const Form<CollectiveReport> form = made_collective_form();
  return form;
}

const Form<Refused>& refused_form() {
  using R = const Refused&;
  static const Form<Refused> form =
      Form<Refused>("refused")
          .has("refused", meaning_of("refused"), [](R r) { return r.reason; })
          .has("memory_over_gib", meaning_of("memory_over_gib"),
               [](R r) {
                 return r.over ? std::optional(static_cast<double>(r.over->value) / (1 << 30))
                               : std::nullopt;
               })
          .has("title", meaning_of("title"), [](R r) { return unless_empty(r.scenario.title); })
          .has("model", meaning_of("model"), [](R r) { return r.scenario.model.name; })
          .has("gpu", meaning_of("gpu"), [](R r) { return r.scenario.node.gpu.name; })
          .has("gpus", meaning_of("gpus"), [](R r) { return r.scenario.gpus; })
          .has("nodes", meaning_of("nodes"), [](R r) { return r.scenario.nodes; })
          .json(
              "plan", meaning_of("plan"), [](Definitions&) { return plan_schema(); },
              [](R r) { return plan_json(r.scenario); })
          .object("cluster", meaning_of("cluster"), cluster_form(),
                  [](R r) -> const Scenario& { return r.scenario; })
          .json("changed", meaning_of("changed"), any_object(),
                [](R r) { return changes_json(r.scenario); });
  return form;
}

/// A point that has no other answer: why.
SchemaOf unanswered_schema() {
  using Reason = const std::string&;
  return any_of({Form<std::string>()
                     .has("refused", meaning_of("refused"), [](Reason reason) { return reason; })
                     .schema_of(),
                 Form<std::string>()
                     .has("failed", meaning_of("failed"), [](Reason reason) { return reason; })
                     .schema_of()});
}

}  // namespace

Json answer_json(const Answer& answer) {
  if (const auto* step = std::get_if<StepReport>(&answer)) return step_form().json(*step);
  if (const auto* one = std::get_if<CollectiveReport>(&answer)) return collective_form().json(*one);
  return refused_form().json(std::get<Refused>(answer));
}

SchemaOf step_schema() { return step_form().schema_of(); }

SchemaOf answer_schema() {
  return any_of({step_form().schema_of(), collective_form().schema_of(), refused_form().schema_of(),
                 unanswered_schema()});
}

}  // namespace stepcast::sim
