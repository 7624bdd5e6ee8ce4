#include "validate/cluster/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/json_text.hpp"
#include "validate/published/ranking.hpp"

namespace stepcast::validate {
namespace {

using stepcast::to_text;

using sim::TextTable;

constexpr auto left = TextTable::Align::left;
constexpr std::size_t least_ranked = 3;

double error_of(const PathCheck& path) { return path.measured / path.described - 1; }

std::string signed_share(double share) { return fmt::format("{:+.1f} %", 100 * share); }

TextTable paths_table(const std::vector<PathCheck>& paths) {
  TextTable table{{"links (TCP payload)", "what", left},
                  {"described", "described_bytes_per_s"},
                  {"measured", "measured_bytes_per_s"},
                  {"error"},
                  {"latency", "latency_s"}};
  for (const PathCheck& path : paths)
    table.row({path.what,
               {to_text(path.described), path.described.value},
               {to_text(path.measured), path.measured.value},
               signed_share(error_of(path)),
               {path.latency > Duration{} ? to_text(path.latency) : "", seconds(path.latency)}});
  return table;
}

TextTable alone_table(const std::vector<AloneCheck>& alone) {
  TextTable table{{"collectives alone", "what", left},
                  {"measured", "measured_s"},
                  {"simulated", "simulated_s"},
                  {"error"}};
  for (const auto& [what, time] : alone)
    table.row({what,
               {to_text(time.measured), seconds(time.measured)},
               {to_text(time.simulated), seconds(time.simulated)},
               signed_share(time.error())});
  return table;
}

/// Mean over ranks.
const MeasuredAndSimulated& part_of(const RunComparison& c, const char* name) {
  const auto found = std::ranges::find(c.parts, name, &MeasuredAndSimulated::what);
  expects(found != c.parts.end(), "a part of a step");
  return *found;
}

TextTable steps_table(const std::vector<RunComparison>& steps) {
  TextTable table{{"step", "", left}};
  for (const char* heading :
       {"measured", "simulated", "error", "+-", "exposed", "simulated", "waiting", "simulated"})
    table.column(heading);
  for (const RunComparison& c : steps) {
    const MeasuredAndSimulated& exposed = part_of(c, "exposed communication");
    const MeasuredAndSimulated& waiting = part_of(c, "waiting for others");
    table.row({c.point, to_text(c.step.measured), to_text(c.step.simulated),
               signed_share(c.step.error()), fmt::format("{:.1f} %", 100 * c.spread),
               to_text(exposed.measured), to_text(exposed.simulated), to_text(waiting.measured),
               to_text(waiting.simulated)});
  }
  return table;
}

sim::ToldSection told_of(const FabricReport& report, bool every_part) {
  sim::ToldSection out;
  out.keep("fabric", report.title);
  out.say(report.title);
  out.table("paths", paths_table(report.paths));
  out.table("alone", alone_table(report.alone));
  out.table("", steps_table(report.steps));
  out.keep_json("steps", [&report] { return sim::parsed_ordered_json(json_of(report.steps)); });
  if (const auto rho = rank_correlation(report)) {
    out.keep("rank_correlation", *rho);
    out.say(fmt::format("rank correlation of {} plans: {:.2f}", report.steps.size(), *rho));
  }
  if (every_part)
    for (const RunComparison& c : report.steps)
      out.blocks.emplace_back(sim::Listing{c.point, "\n" + text_of(c)});
  out.say();
  return out;
}

std::string summary_of(const ClusterReport& report) {
  const std::vector<RunComparison> steps = report.steps();
  if (steps.empty()) return "no step was run";
  std::vector<double> correlations;
  for (const FabricReport& fabric : report.fabrics)
    if (const auto rho = rank_correlation(fabric)) correlations.push_back(*rho);
  std::string text =
      fmt::format("{} steps, compute by {}: median |error| {:.1f} %, worst {:.1f} %", steps.size(),
                  report.compute, 100 * median_error(steps), 100 * worst_error(steps));
  if (!correlations.empty())
    text += fmt::format("; rank correlation in {} fabrics: lowest {:.2f}", correlations.size(),
                        *std::ranges::min_element(correlations));
  return text;
}

}  // namespace

std::vector<RunComparison> ClusterReport::steps() const {
  std::vector<RunComparison> all;
  for (const FabricReport& fabric : fabrics)
    all.insert(all.end(), fabric.steps.begin(), fabric.steps.end());
  return all;
}

std::optional<double> rank_correlation(const FabricReport& report) {
  if (report.steps.size() < least_ranked) return std::nullopt;
  std::vector<double> measured, simulated;
  for (const RunComparison& c : report.steps) {
    measured.push_back(seconds(c.step.measured));
    simulated.push_back(seconds(c.step.simulated));
  }
  return spearman(measured, simulated);
}

sim::ToldSection told_of(const ClusterReport& report, bool every_part) {
  const std::vector<RunComparison> steps = report.steps();
  sim::ToldSection out;
  out.keep("compute", report.compute);
  std::vector<sim::ToldSection> fabrics;
  for (const FabricReport& fabric : report.fabrics) fabrics.push_back(told_of(fabric, every_part));
  out.blocks.emplace_back(sim::ToldEach{"fabrics", std::move(fabrics)});
  if (!steps.empty()) {
    out.keep("median_error", median_error(steps));
    out.keep("worst_error", worst_error(steps));
  }
  TextTable not_run{sim::filed("what"), sim::filed("why")};
  for (const auto& [what, why] : report.refused) {
    not_run.row({what, why}, TextTable::For::files);
    out.say(fmt::format("not run: {}: {}", what, why));
  }
  out.table("not_run", std::move(not_run));
  out.say(summary_of(report));
  return out;
}

}  // namespace stepcast::validate
