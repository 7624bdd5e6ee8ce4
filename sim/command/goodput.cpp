// stepcast goodput: what failures leave of a run, without the rest of its report.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/command/commands.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/answer.hpp"
#include "sim/study/sweep.hpp"
#include "sim/told/goal_text.hpp"
#include "sim/told/goodput.hpp"
#include "sim/told/json.hpp"
#include "sim/told/metrics.hpp"

namespace stepcast::sim {
namespace {

constexpr Option own_options[] = {
    json_option,
    rows_option,
    {"ignore-memory", "", "", "go on with a plan that does not fit in memory"},
};

const std::vector<Option>& goodput_options() {
  static const std::vector<Option> options = with_scenario_options(step_tables, own_options);
  return options;
}

Verb goodput_verb() {
  return {
      "stepcast goodput",
      "[SCENARIO.toml]",
      1,
      "Says what failures leave of a run: goodput, tokens per day, the best checkpoint periods.",
      goodput_options(),
      "stepcast goodput scenarios/failures_llama3.toml"};
}

std::string text_of(const StepReport& report) {
  const std::string out = goodput_text(report).substr(1);  // without the blank line before
  return report.whole_run ? out + "\n" + whole_run_text(report) : out;
}

Form<StepReport> made_goodput_form() {
  using S = const StepReport&;
  Form<StepReport> out;
  out.has("step_s", "The step.", [](S s) { return seconds(s.step_time); });
  for (const Metric& metric : metrics())
    for (const char* of : {"run.", "goodput", "tokens_per_day"})
      if (metric.key.starts_with(of) && metric.of_step != nullptr)
        add_metric<StepReport>(out, metric, metric.of_step);
  return out
      .object("failures", "What stands behind them.", failures_form(),
              [](S s) -> const StepReport& { return s; })
      .has("warnings", "What to know before trusting the numbers.", [](S s) { return s.warnings; });
}

/// The metrics of `run --json` that are of failures and the whole run, and what stands behind them.
const Form<StepReport>& goodput_form() {
  static const Form<StepReport> form = made_goodput_form();
  return form;
}

std::string json_of(const StepReport& report) {
  return json_text(stamped("goodput", goodput_form().json(report)), 2);
}

nlohmann::ordered_json goodput_schema() {
  return document_schema("goodput", "What stepcast goodput prints.", goodput_form().schema_of());
}

int goodput(const Arguments& arguments, const Catalogue& catalogue) {
  check_forms(arguments);
  TomlValue document = asked_document(goodput_verb(), arguments, catalogue);
  for (const char* table : {"sweep", "collective"})
    if (document.find(table) != nullptr)
      throw UsageError("goodput is that of one run",
                       "give a scenario without [" + std::string(table) + "]");
  if (document.find("failures") == nullptr)  // asked for by the verb
    document.set("failures", toml_table("stepcast goodput"));
  Scenario scenario = read_scenario(read_study(std::move(document)).base, catalogue);
  scenario.run.ignore_memory = arguments.has("ignore-memory");
  Session session(catalogue);
  const Answer found = answer(scenario, simulator_of(session));
  if (const auto* refused = std::get_if<Refused>(&found)) throw NoFeasiblePlan(refused->reason);
  const StepReport& report = std::get<StepReport>(found);
  if (!arguments.has("json"))
    for (const std::string& warning : report.warnings) tell(stderr, "warning: " + warning + "\n");
  const AnswerForms forms{[&] { return text_of(report); }, [&] { return json_of(report); }, {}};
  return print_answer(arguments, forms) ? exit_ok : exit_unwritten;
}

}  // namespace

Command goodput_command() {
  return {.verb = goodput_verb(), .run = goodput, .schema = goodput_schema};
}

}  // namespace stepcast::sim
