#include "validate/cluster/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "calibrate/host/facts.hpp"
#include "engine/check.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/files/markdown.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/processes/child.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/program/exit_codes.hpp"
#include "sim/program/today.hpp"
#include "sim/run/session.hpp"
#include "validate/cluster/box.hpp"
#include "validate/cluster/cluster_run.hpp"
#include "validate/cluster/namespaces.hpp"
#include "validate/command/points.hpp"
#include "validate/compare/page.hpp"
#include "validate/trainer/run/run.hpp"

namespace stepcast::validate {
namespace {

namespace fs = std::filesystem;
using sim::Arguments;

constexpr std::int64_t default_steps = 25, default_warm_up = 5;

constexpr sim::Option options[] = {
    {"fabric", "WORD[,WORD]", "",
     "own (of the scenario), nonblocking, 2:1, 4:1, slow-nic; default: own"},
    {"jobs", "N", "", "so many of each point at once, each on every N-th node (default 1)"},
    {"compute", "kernels|waits", "",
     "waits: a kernel is a pause of its calibrated length (default where ranks outnumber cores)"},
    {"tolerance", "PERCENT", "", "exit code 5 when a step time is further off"},
    {"report", "DIR", "", "write a dated report into this folder; NAME.html: a page to hand on"},
    sim::svg_option,
    {"table", "FILE.h5", "", "the kernels' calibration (default: the scenario's own, or host.h5)"},
    {"as-calibrated", "", "", "measure no kernel anew: the table is whole"},
    {"quick", "", "", "calibrate with few samples"},
    {"steps", "N", "", "steps to train at each point (default 25)"},
    {"warm-up", "N", "", "the first of them, not counted (default 5)"},
    {"parts", "", "", "every kind of kernel and collective of every step"},
    {"set", "KEY=VALUE", "", "set any key of the scenario; more may follow, or be repeated"},
    sim::json_option,
    sim::rows_option,
};

/// Whether ranks compute or wait: as asked, or as the cores allow.
std::string compute_word(const Arguments& arguments, const std::vector<Point>& points) {
  if (arguments.has("compute")) return arguments.choice("compute");
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const auto ranks = [&](const Point& point) {
    return arguments.count("jobs", 1) * point.scenario.plan.ranks();
  };
  const bool fits = std::ranges::all_of(points, [&](const Point& p) { return ranks(p) <= cores; });
  return fits ? "kernels" : "waits";
}

using CheckPoint = void (*)(const sim::Scenario&);

/// Takes the points out that the trainer cannot run, with its own reason.
void take_out_refused(std::vector<Point>& points, ClusterReport& report, CheckPoint check) {
  std::erase_if(points, [&](const Point& point) {
    try {
      check(point.scenario);
      return false;
    } catch (const InputError& error) {
      report.refused.emplace_back(point.label, error.problem());
      return true;
    }
  });
}

void write_report(const Arguments& arguments, const std::string& text) {
  const fs::path scenario = arguments.positional()[0];
  std::error_code error;  // shows when the file is written
  fs::create_directories(arguments.get("report"), error);
  double load[3] = {};
  getloadavg(load, 3);
  const std::string name = sim::markdown_text(scenario.filename().string());
  const std::string measured = fmt::format(
      "Measured {} (UTC) by `stepcast validate cluster` of {} on {} ({} cores, kernel {}, {}, {}), "
      "load average {:.1f} at its end.",
      sim::today(), name, sim::markdown_text(calibrate::host::processor_name()),
      std::thread::hardware_concurrency(), sim::markdown_text(calibrate::host::system_name()),
      sim::markdown_text(sim::first_line_of({"ip", "-V"})),
      sim::markdown_text(calibrate::host::clocks()), load[0]);
  sim::write_whole(
      fs::path(arguments.get("report")) /
          fmt::format("{}_{}.md", scenario.stem().string(), sim::today()),
      fmt::format(
          "# A cluster in a box: {}\n\n{}\n`error` is simulated over measured less one; `+-` is "
          "how much the measured steps vary.\n\n{}",
          name, sim::folded(measured), sim::markdown_block(text)));
}

int hand_in(const Arguments& arguments, const ClusterReport& report) {
  const sim::ToldSection told = told_of(report, arguments.has("parts"));
  const std::string text = as_text(told);
  const bool printed =
      sim::print_answer(arguments, forms_of(told, "validate-cluster", {"fabrics"}));
  const sim::HandoutFiles files = page_files(arguments);
  if (arguments.has("report") && files.report.empty()) write_report(arguments, text);
  const bool handed = !files.any() || sim::handed_out(files, [&] {
    return runs_page(fs::path(arguments.positional()[0]).filename().string(), report.steps(), text,
                     sim::origin_of(cluster_verb, arguments));
  });
  if (!printed || !handed) return sim::exit_unwritten;
  const auto tolerance = arguments.share("tolerance");
  const bool within = !tolerance || worst_error(report.steps()) <= *tolerance;
  return within ? sim::exit_ok : sim::exit_too_inaccurate;
}

/// The whole of it, in namespaces.
int run_in(const Arguments& arguments, const sim::Catalogue& catalogue,
           const std::string& scratch) {
  sim::check_forms(arguments);
  fs::create_directories(fs::path(scratch) / "points");
  ClusterPlan plan{.points = points_of(cluster_verb, arguments, scratch, catalogue),
                   .fabrics = fabrics_of(arguments.get("fabric")),
                   .jobs = arguments.count("jobs", 1),
                   .scratch = scratch};
  ClusterReport report;
  take_out_refused(plan.points, report, check_trainable);
  report.compute = compute_word(arguments, plan.points);
  if (report.compute == "waits") take_out_refused(plan.points, report, check_waits);
  if (plan.points.empty())
    throw InputError(arguments.first("which scenario?"), "the trainer runs none of its points",
                     report.refused.front().second);
  plan.trainer_options = {
      "--compute", report.compute,
      "--steps",   std::to_string(arguments.count("steps", default_steps)),
      "--warm-up", std::to_string(arguments.count("warm-up", default_warm_up, 0))};
  write_points(plan.points);
  if (const int code = calibrate_points(arguments, plan.points); code != sim::exit_ok) return code;
  sim::Session session(catalogue);  // after calibration: it reads the tables that were measured
  const int code = run_cluster(plan, session, report);
  if (report.steps().empty()) return code;
  const int judged = hand_in(arguments, report);
  return code != sim::exit_ok ? code : judged;
}

}  // namespace

const sim::Verb cluster_verb{
    "stepcast validate cluster",
    "SCENARIO.toml",
    1,
    "Builds the scenario's cluster on this machine out of network namespaces and shaped links, "
    "measures it, trains in it and simulates the same.",
    options,
    "stepcast validate cluster scenarios/cluster_in_a_box.toml --fabric nonblocking,2:1,4:1"};

int command_cluster(const Arguments& arguments, const sim::Catalogue& catalogue) {
  // A mistake shows before anything is built.
  arguments.first("which scenario?");
  fabrics_of(arguments.get("fabric"));
  arguments.choice("compute");
  arguments.count("jobs", 1);
  arguments.share("tolerance");
  if (arguments.count("warm-up", default_warm_up, 0) >= arguments.count("steps", default_steps))
    throw sim::UsageError("--warm-up leaves no step to count");
  if (const std::string missing = missing_tools(); !missing.empty())
    throw sim::Failure(sim::exit_skipped, "no cluster in a box here: " + missing);
  return run_apart(
      [&](const std::string& scratch) { return run_in(arguments, catalogue, scratch); });
}

}  // namespace stepcast::validate
