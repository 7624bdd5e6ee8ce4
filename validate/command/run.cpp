#include "validate/command/run.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "calibrate/host/facts.hpp"
#include "engine/check.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/files/markdown.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/scratch_folder.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/today.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "validate/command/points.hpp"
#include "validate/compare/page.hpp"
#include "validate/compare/run_comparison.hpp"
#include "validate/trainer/run/run.hpp"

namespace stepcast::validate {
namespace {

namespace fs = std::filesystem;
using sim::Arguments;

constexpr sim::Option options[] = {
    {"tolerance", "PERCENT", "", "exit code 5 when a step time is further off"},
    {"out", "DIR", "", "keep results and timelines there (default: a temporary folder)"},
    {"report", "DIR", "", "write a dated report into this folder; NAME.html: a page to hand on"},
    sim::svg_option,
    {"table", "FILE.h5", "", "the calibration (default: the scenario's own, or host.h5, gpu.h5)"},
    {"as-calibrated", "", "", "measure nothing anew: the table is whole"},
    {"quick", "", "", "calibrate with few samples"},
    {"steps", "N", "", "steps to train at each point (default 60)"},
    {"warm-up", "N", "", "the first of them, not counted (default 10)"},
    {"ranks", "mpi|processes|threads", "", "what the ranks are: see stepcast-trainer --help"},
    {"set", "KEY=VALUE", "", "set any key of the scenario; more may follow, or be repeated"},
    sim::json_option,
    sim::rows_option,
};

/// Where the run keeps its files; a temporary folder goes with it.
class Folder {
 public:
  explicit Folder(const std::string& named) : path_(named) {
    std::error_code error;
    if (named.empty()) path_ = scratch_.emplace("run").path();
    fs::create_directories(path_ / "points", error);
    if (error)
      throw sim::OutputError("--out", "the folder '" + path_.string() + "' cannot be written");
  }
  const fs::path& path() const { return path_; }

 private:
  std::optional<sim::ScratchFolder> scratch_;
  fs::path path_;
};

int train(const Arguments& arguments, const Point& point) {
  std::vector<std::string> words{point.file(".toml"), "--out", point.file(".results.json"),
                                 "--timeline", point.file(".measured.json")};
  for (const char* option : {"steps", "warm-up", "ranks"})
    if (arguments.has(option)) {
      words.push_back(std::string("--") + option);
      words.push_back(arguments.get(option));
    }
  const int code = run_sister("stepcast-trainer", words);
  if (code != sim::exit_rank_lost) return code;
  std::fprintf(stderr, "once more: the other points are worth a second try\n");
  return run_sister("stepcast-trainer", std::move(words));
}

struct Simulated {
  sim::StepReport report;
  sim::Timeline timeline;
};

RunComparison compare_point(const Point& point, Simulated simulated) {
  const TrainerResults measured = read_results(point.file(".results.json"));
  std::vector<sim::Timeline> both = sim::read_timelines(point.file(".measured.json"));
  if (both.size() != 1) throw InputError(point.file(".measured.json"), "has more than one step");
  both.push_back(std::move(simulated.timeline));
  sim::write_timelines(point.file(".timeline.json"), both);
  return compare_run(point.label, measured, both[0], simulated.report, both[1]);
}

/// Trains and compares point by point until one fails, whose exit code it returns; what is done is
/// kept in `comparisons`. Simulates first: a time that is not known shows before minutes of
/// training.
int run_points(const Arguments& arguments, const std::vector<Point>& points, sim::Session& session,
               std::vector<RunComparison>& comparisons) {
  for (const Point& point : points) {
    sim::tell(stderr,
              fmt::format("{} of {}: {}\n", comparisons.size() + 1, points.size(), point.label));
    if (sim::stop_requested()) return sim::stop_code();
    Simulated simulated;
    simulated.report = session.timeline(point.scenario, simulated.timeline);
    if (const int code = train(arguments, point); code != sim::exit_ok) return code;
    comparisons.push_back(compare_point(point, std::move(simulated)));
    sim::write_whole(point.folder() / "comparison.json", json_of(comparisons) + "\n");
  }
  return sim::exit_ok;
}

void write_report(const Arguments& arguments, const std::vector<RunComparison>& points) {
  const fs::path scenario = arguments.positional()[0];
  std::error_code error;  // shows when the file is written
  fs::create_directories(arguments.get("report"), error);
  const fs::path path = fs::path(arguments.get("report")) /
                        fmt::format("{}_{}.md", scenario.stem().string(), sim::today());
  const std::string name = sim::markdown_text(scenario.filename().string());
  const std::string measured =
      fmt::format("Measured {} (UTC) by `stepcast validate run` of {} on {} (host: {}, kernel {}).",
                  sim::today(), name, sim::markdown_text(points.front().device),
                  sim::markdown_text(calibrate::host::clocks()),
                  sim::markdown_text(calibrate::host::system_name()));
  std::string text = fmt::format(
      "# Measured beside simulated: {}\n\n{}\n`error` is simulated over measured less one; `+-` is "
      "how much the measured steps vary.\n\n{}",
      name, sim::folded(measured), sim::markdown_block(table_of(points)));
  for (const RunComparison& c : points) text += "\n" + sim::markdown_block(text_of(c));
  sim::write_whole(path, text);
}

std::string text_of(const std::vector<RunComparison>& points) {
  std::string text;
  for (const RunComparison& c : points) text += text_of(c) + "\n";
  return points.size() > 1 ? text + table_of(points) : text;
}

}  // namespace

const sim::Verb run_verb{"stepcast validate run",
                         "SCENARIO.toml",
                         1,
                         "Trains a scenario, or every point of its sweep, and simulates the same.",
                         options,
                         "stepcast validate run scenarios/host_circle.toml --tolerance 20"};

int command_run(const Arguments& arguments, const sim::Catalogue& catalogue) {
  sim::stop_requested();  // before anything is read: the temporary folder goes in any case
  sim::check_forms(arguments);
  const auto tolerance = arguments.share("tolerance");
  const Folder folder(arguments.get("out"));
  const std::vector<Point> points = points_of(run_verb, arguments, folder.path(), catalogue);
  for (const Point& point : points) check_trainable(point.scenario);
  write_points(points);
  if (const int code = calibrate_points(arguments, points); code != sim::exit_ok) return code;
  sim::Session session(catalogue);  // after calibration: it reads the tables that were measured
  std::vector<RunComparison> comparisons;
  const int code = run_points(arguments, points, session, comparisons);
  if (comparisons.empty()) return code;
  const bool printed = sim::print_answer(
      arguments,
      {[&] { return text_of(comparisons); }, [&] { return json_of(comparisons); }, {"points"}});
  const sim::HandoutFiles files = page_files(arguments);
  if (arguments.has("report") && files.report.empty()) write_report(arguments, comparisons);
  const bool handed = !files.any() || sim::handed_out(files, [&] {
    return runs_page(fs::path(arguments.positional()[0]).filename().string(), comparisons,
                     text_of(comparisons), sim::origin_of(run_verb, arguments));
  });
  if (!printed || !handed) return sim::exit_unwritten;
  if (code != sim::exit_ok) return code;
  const bool within = !tolerance || worst_error(comparisons) <= *tolerance;
  return within ? sim::exit_ok : sim::exit_too_inaccurate;
}

}  // namespace stepcast::validate
