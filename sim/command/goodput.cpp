// stepcast goodput: what failures leave of a run, without the rest of its report.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/command/commands.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/report/goal_text.hpp"
#include "sim/report/goodput.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/answer.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {
namespace {

constexpr Option own_options[] = {
    {"json", "", "", "print JSON"},
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

int goodput(const Arguments& arguments, const Catalogue& catalogue) {
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
  if (arguments.has("json")) {
    nlohmann::ordered_json out{{"step_s", seconds(report.step_time)},
                               {"failures", goodput_json(report)},
                               {"warnings", report.warnings}};
    tell(stdout, out.dump(2) + "\n");
    return exit_ok;
  }
  for (const std::string& warning : report.warnings) tell(stderr, "warning: " + warning + "\n");
  tell(stdout, goodput_text(report).substr(1));  // without the blank line before
  if (report.whole_run) tell(stdout, "\n" + whole_run_text(report));
  return exit_ok;
}

}  // namespace

Command goodput_command() { return {goodput_verb(), goodput}; }

}  // namespace stepcast::sim
