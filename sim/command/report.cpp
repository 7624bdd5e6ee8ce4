// stepcast report: a forecast as a page to hand on.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "engine/check.hpp"
#include "sim/command/asked_sides.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/compare/compare.hpp"
#include "sim/files/input_file.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/handout/points_page.hpp"
#include "sim/output/study_run.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/output_place.hpp"
#include "sim/study/sweep.hpp"
#include "sim/told/text.hpp"

namespace stepcast::sim {
namespace {

constexpr Option report_own_options[] = {
    {"out", "FILE.html", "", "the page (default: report.html)"},
    svg_option,
    no_alternatives_option,
    {"ignore-memory", "", "", "go on with a plan that does not fit in memory"},
    {"threads", "N", "", "plans to simulate at once (default: all cores)"},
};

const std::vector<Option>& report_options() {
  static const std::vector<Option> options = with_scenario_options(step_tables, report_own_options);
  return options;
}

Verb report_verb() {
  return {
      "stepcast report",
      "[SCENARIO.toml|RESULT ...]",
      99,
      "Writes a page to hand on: days, dollars and what limits a step, then all that engineers "
      "ask, as one HTML file that needs no network. Of a scenario, of a sweep, of a result that "
      "--json or --out wrote, or of several of them side by side.",
      report_options(),
      "stepcast report --model llama2-7b --gpu h100 --nodes 16 --tokens 2T --out report.html"};
}

void check_alternatives(const Arguments& arguments, bool one_step) {
  if (arguments.has("no-alternatives") && !one_step)
    throw UsageError("--no-alternatives is for the report of one step");
}

/// What a result needs of a scenario is in scenario.toml beside it; search and design keep what
/// they printed.
struct Kept {
  std::string results, scenario, printed;  // empty: there is none
};

/// None for a scenario file, or without a file.
std::optional<Kept> kept_at(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  if (!is_kept_result(path)) return std::nullopt;
  fs::path file = path;
  if (folder) {
    file /= "results.json";
    for (const char* name : {"search.json", "design.json"})
      if (const fs::path other = fs::path(path) / name; fs::exists(other, error)) file = other;
  }
  const fs::path scenario = file.parent_path() / "scenario.toml";
  const bool ours = file.filename() == "results.json" && fs::exists(scenario, error) &&
                    read_mark(file.parent_path().string());
  fs::path printed = file;
  printed.replace_extension(".txt");
  return Kept{file.string(), ours ? scenario.string() : "",
              folder && fs::exists(printed, error) ? printed.string() : ""};
}

bool sets_a_key(const Arguments& arguments) {
  return arguments.has("gpu") || arguments.has("framework") ||
         !settings_of(report_verb(), arguments).empty();
}

/// One scenario, answered.
Told page_of(TomlValue document, const Arguments& arguments, Session& session, int& code) {
  const Verb verb = report_verb();
  const auto read = [&](const TomlValue& point) {
    Scenario out = read_scenario(point, session.catalogue());
    if (out.collective)
      throw UsageError("a report is of training steps", "stepcast collective --explain says more");
    out.run.ignore_memory = arguments.has("ignore-memory");
    return out;
  };
  Study study = read_study(std::move(document));
  check_alternatives(arguments, !study.is_sweep);
  const Results results = run_study(std::move(study), {.read = read,
                                                       .simulator = simulator_of(session),
                                                       .threads = arguments.threads(),
                                                       .stop = stop_requested()});
  if (results.interrupted) code = stop_code();
  if (results.study.is_sweep)
    return sweep_page(results, results_table(results, TableView(arguments)), session.catalogue(),
                      origin_of(verb, arguments));
  if (!results.single) throw Failure(static_cast<ExitCode>(stop_code()), "interrupted");
  if (std::holds_alternative<Refused>(*results.single)) code = exit_no_feasible_plan;
  return answer_page(*results.single, verb, arguments, session);
}

/// A kept result: computed anew from the scenario that lies beside a single one, else what it
/// holds.
Told page_of_kept(const Kept& kept, const Arguments& arguments, Session& session, int& code) {
  if (sets_a_key(arguments))
    throw UsageError("options change scenarios, and a result is what it is",
                     "give its scenario (TOML) instead");
  if (!kept.scenario.empty()) {
    TomlValue document = read_toml_file(kept.scenario);
    if (document.find("sweep") == nullptr && document.find("collective") == nullptr)
      return page_of(std::move(document), arguments, session, code);
  }
  check_alternatives(arguments, false);
  const std::vector<Side> sides = read_sides(kept.results);
  std::vector<NamedRow> rows;
  for (const Side& side : sides) rows.push_back({side.name, &side.row});
  return results_page(kept.results, rows, kept.printed.empty() ? "" : read_input(kept.printed),
                      origin_of(report_verb(), arguments));
}

/// Several, side by side.
Told page_of_sides(const Arguments& arguments, Session& session, int& code) {
  check_alternatives(arguments, false);
  std::vector<Asked> asked;
  bool scenarios = false;
  for (const std::string& file : arguments.positional()) {
    if (kept_at(file)) {
      asked.push_back(result_side(file, file, session.catalogue()));
    } else {
      add_document_of(asked, report_verb(), arguments, session.catalogue(), file, file);
      scenarios = true;
    }
  }
  if (!scenarios && sets_a_key(arguments))
    throw UsageError("options change scenarios, and a result is what it is",
                     "give a scenario (TOML) beside the results");
  Runner runner(session,
                {arguments.threads(), Progress::Style::none, arguments.has("ignore-memory")});
  const Comparison sides = compare_sides(std::move(asked), runner, {50, 1});
  if (std::ranges::none_of(sides.sides, &Side::answered)) code = exit_no_feasible_plan;
  return comparison_page(sides, session.catalogue(), origin_of(report_verb(), arguments));
}

int report(const Arguments& arguments, const Catalogue& catalogue) {
  stop_requested();  // before anything is read
  Session session(catalogue);
  int code = exit_ok;
  const auto& files = arguments.positional();
  const auto kept = files.size() == 1 ? kept_at(files.front()) : std::nullopt;
  const Told page = files.size() > 1 ? page_of_sides(arguments, session, code)
                    : kept           ? page_of_kept(*kept, arguments, session, code)
                           : page_of(asked_document(report_verb(), arguments, catalogue), arguments,
                                     session, code);
  if (stop_requested()) return stop_code();  // not all that it compares: the page of before stays
  const HandoutFiles to{arguments.get("out", "report.html"), arguments.get("svg")};
  if (!handed_out(to, [&] { return page; })) return exit_unwritten;
  tell(stdout, to.report + "\n");
  return code;
}

}  // namespace

Command report_command() { return {report_verb(), report}; }

}  // namespace stepcast::sim
