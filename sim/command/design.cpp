// stepcast design: the cheapest cluster for a goal.
#include <algorithm>
#include <cstdio>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/command/kept_plans.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/design/plan_finder.hpp"
#include "sim/files/colour.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/goal/whole_run.hpp"
#include "sim/handout/design_page.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/progress.hpp"
#include "sim/program/table_view.hpp"
#include "sim/program/today.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/without_effect.hpp"
#include "sim/search/bases.hpp"
#include "sim/study/answer.hpp"
#include "sim/told/design.hpp"

namespace stepcast::sim {
namespace {

constexpr Option design_own_options[] = {
    framework_option,
    set_option,
    {"allow-tp-across-nodes", "", "", "also tensor degrees above the GPUs of a node"},
    {"time", "SPAN", "", "end after that time, 60s, with the gap that is left"},
    {"json", "", "", "print JSON"},
    {"out", "DIR", "",
     "also write the answer and the three machines' scenarios into DIR, and keep plans"},
    report_option,
    svg_option,
    {"threads", "N", "", "plans to simulate at once (default: all cores)"},
    {"quiet", "", "", "no progress"},
};

const std::vector<Option>& design_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out = with_table_options(design_own_options);
    out.insert(out.end(), std::begin(kept_plans_options), std::end(kept_plans_options));
    return out;
  }();
  return options;
}

Verb design_verb() {
  return {
      "stepcast design",
      "GOAL.toml, or merge DIR",
      2,
      "Finds the cheapest, the fastest and the greenest cluster for a goal, with its bill.",
      design_options(),
      "stepcast design scenarios/design/llama3-70b-2t.toml",
      "A goal is a scenario with [design] in the place of [cluster] and [plan]: nodes, fabrics\n"
      "and sizes that are tried, and what limits them: days, budget, capital, power, racks.\n"
      "--csv FILE writes the bills. --out DIR keeps every plan that is simulated: --resume goes\n"
      "on, shards fill one folder, merge DIR gives the answer of all."};
}

Verb design_merge_verb() {
  static const std::vector<Option> options =
      options_named(design_options(), kept_plans_merge_names);
  return {"stepcast design merge",
          "DIR",
          1,
          "Gives the answer of a design whose shards are in DIR, as one whole design does.",
          options,
          "stepcast design merge DIR --json"};
}

/// The place of a machine among those of the goal.
std::size_t index_in(const Machines& machines, const Machine& machine) {
  return static_cast<std::size_t>(&machine - machines.all.data());
}

using DesignClock = std::chrono::steady_clock;

FinderOptions finder_options(const Arguments& arguments, KeptPlans& kept) {
  FinderOptions out;
  out.step = [&](const Scenario& s) { return kept.step(s); };
  out.knows = [&](const Scenario& s) { return kept.knows(s); };
  out.only_known = kept.shard() == no_share;
  out.threads = arguments.threads();
  out.across_nodes = arguments.has("allow-tp-across-nodes");
  if (arguments.has("time"))
    out.deadline = DesignClock::now() + std::chrono::duration_cast<DesignClock::duration>(
                                            parse<Duration>(arguments.get("time"), "--time"));
  return out;
}

/// Warnings that hold of every answer: a key that only owners ask for is idle for a rented one.
std::vector<std::string> design_warnings(const DesignTold& told) {
  std::vector<std::string> out;
  bool first = true;
  for (const AimAnswer& one : told.answer.answers) {
    if (!one.choice) continue;
    const Offer& offer = told.machines.offers[one.choice->offer];
    const Scenario s = priced(one.choice->report.scenario, offer.terms, told.parts, {});
    std::vector<std::string> here = without_effect(s);
    for (const std::string& warning : goal_warnings(s, today())) here.push_back(warning);
    if (first)
      out = here;
    else
      std::erase_if(out,
                    [&](const std::string& w) { return std::ranges::find(here, w) == here.end(); });
    first = false;
  }
  return out;
}

NamedTexts design_files(const DesignTold& told, const std::string& text) {
  NamedTexts files{{"design.json", design_json(told) + "\n"},
                   {"design.txt", text},
                   {"bill.csv", bill_table(told).csv()}};
  for (const AimAnswer& one : told.answer.answers) {
    if (!one.choice) continue;
    const Offer& offer = told.machines.offers[one.choice->offer];
    const Scenario s = priced(one.choice->report.scenario, offer.terms, told.parts, {});
    files.emplace_back(word_of(one.aim) + ".toml", write_toml(resolved_document(s)));
  }
  return files;
}

/// With the step of the cheapest, unless an interrupt asks for an early end.
Told page_of_design(const DesignTold& told, const TomlValue& asked,
                    const std::vector<std::string>& warnings, Session& session,
                    const Arguments& arguments) {
  DesignHandout handout{told, asked, warnings};
  const auto& cheapest = told.answer.answers.front().choice;
  if (cheapest && !stop_requested())
    handout.step =
        step_handout(cheapest->report, session, {.alternatives = false}, stop_requested());
  return design_page(handout, session.catalogue(), origin_of(design_verb(), arguments));
}

int answer_design(const PlansRequest& request, const Arguments& arguments,
                  const Catalogue& catalogue) {
  const TableView view(arguments);
  const std::atomic<bool>& stop = stop_requested();
  const TomlValue& asked = request.document;
  const DesignGoal goal = read_design_goal(asked);
  const PartList parts = read_parts(catalogue, goal.parts, goal.document.where);
  const Machines machines = machines_of(goal, catalogue, parts, search_bases);
  Session session(catalogue);
  KeptPlans kept(request, design_verb(), arguments, session);
  const FinderOptions options = finder_options(arguments, kept);
  Confidence confidence(session);
  const auto ended = [&] {
    return stop || (options.deadline && DesignClock::now() >= *options.deadline);
  };
  ProgressLine line("stepcast: ", ProgressLine::style_for(arguments.has("quiet")));
  std::size_t searched = 0;
  const PlanFinder find = [&, inner = plan_finder(goal, machines, session, options, stop)](
                              const Machine& machine, double above_s, SearchDepth how) {
    const auto now = ProgressLine::Clock::now();
    if (line.due(now))
      line.show(std::to_string(searched) + " machines searched; " + name_of(machine.scenario), now);
    if (kept.shard().is_part() && !kept.shard().has(index_in(machines, machine)))
      return FastestPlan{.open = true};  // another shard's
    ++searched;
    return inner(machine, above_s, how);
  };
  Designer designer(machines, parts, peak_rules(goal, machines), find, stop);
  const DesignAnswer answer = study_design(
      designer, machines, goal.limits, [&](StepReport& report) { confidence.judge(report); },
      ended);
  if (kept.shard().is_part()) return kept.tell_shard(answer.ended, arguments.has("json"));
  const DesignTold told{goal, machines, parts, designer, answer};
  const TextTable bill = answer.met() ? view.arranged(bill_table(told)) : TextTable{};
  const std::string bills = answer.met() ? view.text(bill) : "";
  std::string text = design_text(told, bills);
  const std::vector<std::string> warnings = design_warnings(told);
  for (const std::string& warning : warnings) text += "warning  " + warning + "\n";
  if (arguments.has("json"))
    tell(stdout, design_json(told) + "\n");
  else
    tell_best(stdout, view.prints_csv() ? bills : text, "cheapest");
  if (kept.has_folder()) kept.write(design_files(told, text), answer.ended);
  if (answer.met()) view.write(bill);
  const HandoutFiles files = handout_files(arguments);
  const bool written = !files.any() || handed_out(files, [&] {
    return page_of_design(told, asked, warnings, session, arguments);
  });
  if (stop) return stop_code();
  if (!written) return exit_unwritten;
  return answer.met() ? exit_ok : exit_no_feasible_plan;
}

int design(const Arguments& arguments, const Catalogue& catalogue) {
  stop_requested();  // before anything is read
  const Verb own = design_verb();
  if (const auto words = merge_words(arguments)) {
    const StoredRequest stored = stored_request(own, design_merge_verb(), *words);
    return answer_design(stored.request, stored.arguments, catalogue);
  }
  check_kept_plans(own, arguments);
  if (arguments.has("status")) return show_plans_status(own, arguments);
  const PlansRequest request{asked_document(own, arguments, catalogue, "design"),
                             option_words(arguments, {"allow-tp-across-nodes"})};
  if (!arguments.has("print-slurm")) return answer_design(request, arguments, catalogue);
  read_design_goal(request.document);  // before it is in a queue: mistakes
  return print_plans_slurm(own, "the machines of a goal", arguments);
}

}  // namespace

Command design_command() { return {.verb = design_verb(), .run = design, .schema = design_schema}; }

}  // namespace stepcast::sim
