// stepcast why: the critical path of one step.
#include <cstdio>

#include "sim/command/commands.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/report/why.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/answer.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {
namespace {

constexpr Option why_options[] = {
    {"top", "N", "", "rows of a table (default: 12)"},
    {"json", "", "", "print JSON: every edge"},
    {"timeline", "FILE", "",
     "also write the step as Chrome trace events, the critical path with arrows"},
    {"no-fold", "", "", "simulate every rank"},
    {"ignore-memory", "", "", "go on with a plan that does not fit in memory"},
};

const std::vector<Option>& all_why_options() {
  static const std::vector<Option> options =
      with_scenario_options({"model", "cluster", "plan", "batch", "precision", "run"}, why_options);
  return options;
}

Verb why_verb() {
  return {"stepcast why",
          "[SCENARIO.toml]",
          1,
          "Shows the critical path of one training step, and what would move it.",
          all_why_options(),
          "stepcast why --model llama2-7b --gpu h100 --nodes 16 --data zero2 --local-batch 2"};
}

Scenario one_step(const Arguments& arguments, const Catalogue& catalogue) {
  TomlValue document = asked_document(why_verb(), arguments, catalogue);
  for (const char* table : {"sweep", "collective"})
    if (document.find(table) != nullptr)
      throw UsageError("a critical path is that of one step",
                       "give a scenario without [" + std::string(table) + "]");
  Scenario scenario = read_scenario(read_study(std::move(document)).base, catalogue);
  scenario.run.fold = !arguments.has("no-fold");
  scenario.run.ignore_memory = arguments.has("ignore-memory");
  return scenario;
}

/// With the degrees that "best" finds.
Scenario resolved(Scenario scenario, Session& session) {
  if (scenario.open.empty()) return scenario;
  const Answer best = answer(scenario, simulator_of(session));
  if (const auto* refused = std::get_if<Refused>(&best)) throw NoFeasiblePlan(refused->reason);
  return std::get<StepReport>(best).scenario;
}

int why_command_main(const Arguments& arguments, const Catalogue& catalogue) {
  const auto top = static_cast<std::size_t>(arguments.count("top", 12));
  Session session(catalogue);
  Timeline timeline;
  const Why found = why(resolved(one_step(arguments, catalogue), session), session,
                        arguments.has("timeline") ? &timeline : nullptr);
  const std::string text = arguments.has("json") ? why_json(found) + "\n" : why_text(found, top);
  std::fputs(text.c_str(), stdout);
  if (arguments.has("timeline")) write_timelines(arguments.get("timeline"), {&timeline, 1});
  return exit_ok;
}

}  // namespace

Command why_command() { return {why_verb(), why_command_main}; }

}  // namespace stepcast::sim
