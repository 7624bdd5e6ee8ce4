// stepcast why: the critical path of one step.
#include <cstdio>

#include "sim/command/commands.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/command/timeline_options.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/goal_file.hpp"
#include "sim/study/answer.hpp"
#include "sim/study/sweep.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "sim/told/why.hpp"

namespace stepcast::sim {
namespace {

constexpr Option why_options[] = {
    {"top", "N", "", "rows of a table (default: 12)"},
    {"json", "", "", "print JSON: every edge"},
    {"csv", "FILE", "", "also write every edge as CSV; -: print only that"},
    {"timeline", "FILE", "",
     "the step and its critical path for Perfetto: .json or .json.gz (Chrome trace events), or "
     ".pftrace"},
    timeline_ranks_option,
    timeline_limit_option,
    {"no-fold", "", "", "simulate every rank"},
    {"ignore-memory", "", "", "go on with a plan that does not fit in memory"},
};

const std::vector<Option>& all_why_options() {
  static const std::vector<Option> options = with_scenario_options(step_tables, why_options);
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
  check_forms(arguments);
  const auto top = static_cast<std::size_t>(arguments.count("top", 12));
  const TimelineOrder order = timeline_order(arguments);
  Session session(catalogue);
  Timeline timeline;
  timeline.asked = order.ranks;
  Why found = why(resolved(one_step(arguments, catalogue), session), session,
                  arguments.has("timeline") ? &timeline : nullptr);
  const Simulator simulator = simulator_of(session);
  if (asks_for_costs(found.report.scenario) || found.report.scenario.failures.on)
    simulator.judge_step(found.report);
  const auto known = static_cast<std::ptrdiff_t>(found.report.warnings.size());
  complete(found.report, simulator);
  found.warnings.insert(found.warnings.end(), found.report.warnings.begin() + known,
                        found.report.warnings.end());
  const ToldSection told = told_of(found, top);
  const bool printed = print_answer(arguments, forms_of(told, "why", {"edges"}));
  if (arguments.has("timeline")) {
    no_larger_than(order.limit, order.path)(size_of(timeline));
    write_step(order, std::move(timeline), found.report.scenario);
  }
  return printed ? exit_ok : exit_unwritten;
}

}  // namespace

Command why_command() {
  return {.verb = why_verb(), .run = why_command_main, .schema = why_schema};
}

}  // namespace stepcast::sim
