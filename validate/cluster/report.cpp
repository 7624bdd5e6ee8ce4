#include "validate/cluster/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/text_table.hpp"
#include "validate/published/ranking.hpp"

namespace stepcast::validate {
namespace {

using stepcast::to_text;

using Json = nlohmann::ordered_json;
using sim::TextTable;

constexpr std::size_t least_ranked = 3;

double error_of(const PathCheck& path) { return path.measured / path.described - 1; }

std::string signed_share(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string paths_text(const std::vector<PathCheck>& paths) {
  TextTable table;
  table.column("links (TCP payload)", "", TextTable::Align::left);
  for (const char* heading : {"described", "measured", "error", "latency"}) table.column(heading);
  for (const PathCheck& path : paths)
    table.row({path.what, to_text(path.described), to_text(path.measured),
               signed_share(error_of(path)),
               path.latency > Duration{} ? to_text(path.latency) : ""});
  return table.text();
}

std::string alone_text(const std::vector<AloneCheck>& alone) {
  TextTable table;
  table.column("collectives alone", "", TextTable::Align::left);
  for (const char* heading : {"measured", "simulated", "error"}) table.column(heading);
  for (const AloneCheck& one : alone)
    table.row({one.what, to_text(one.time.measured), to_text(one.time.simulated),
               signed_share(one.time.error())});
  return table.text();
}

/// Mean over ranks.
const MeasuredAndSimulated& part_of(const RunComparison& c, const char* name) {
  const auto found = std::ranges::find(c.parts, name, &MeasuredAndSimulated::what);
  expects(found != c.parts.end(), "a part of a step");
  return *found;
}

std::string steps_text(const std::vector<RunComparison>& steps) {
  TextTable table;
  table.column("step", "", TextTable::Align::left);
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
  return table.text();
}

std::string fabric_text(const FabricReport& report, bool every_part) {
  std::string text = report.title + "\n\n" + paths_text(report.paths);
  if (!report.alone.empty()) text += "\n" + alone_text(report.alone);
  if (!report.steps.empty()) text += "\n" + steps_text(report.steps);
  if (const auto rho = rank_correlation(report))
    text += fmt::format("rank correlation of {} plans: {:.2f}\n", report.steps.size(), *rho);
  if (every_part)
    for (const RunComparison& c : report.steps) text += "\n" + text_of(c);
  return text;
}

std::string summary_of(const ClusterReport& report) {
  const std::vector<RunComparison> steps = report.steps();
  if (steps.empty()) return "no step was run\n";
  std::vector<double> correlations;
  for (const FabricReport& fabric : report.fabrics)
    if (const auto rho = rank_correlation(fabric)) correlations.push_back(*rho);
  std::string text =
      fmt::format("{} steps, compute by {}: median |error| {:.1f} %, worst {:.1f} %", steps.size(),
                  report.compute, 100 * median_error(steps), 100 * worst_error(steps));
  if (!correlations.empty())
    text += fmt::format("; rank correlation in {} fabrics: lowest {:.2f}", correlations.size(),
                        *std::ranges::min_element(correlations));
  return text + "\n";
}

Json json_of(const FabricReport& report) {
  Json json{{"fabric", report.title}, {"paths", Json::array()}, {"alone", Json::array()}};
  for (const PathCheck& p : report.paths)
    json["paths"].push_back({{"what", p.what},
                             {"described_bytes_per_s", p.described.value},
                             {"measured_bytes_per_s", p.measured.value},
                             {"latency_s", seconds(p.latency)}});
  for (const AloneCheck& a : report.alone)
    json["alone"].push_back({{"what", a.what},
                             {"measured_s", seconds(a.time.measured)},
                             {"simulated_s", seconds(a.time.simulated)}});
  json["steps"] = sim::parsed_ordered_json(json_of(report.steps));
  if (const auto rho = rank_correlation(report)) json["rank_correlation"] = *rho;
  return json;
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

std::string text_of(const ClusterReport& report, bool every_part) {
  std::string text;
  for (const FabricReport& fabric : report.fabrics) text += fabric_text(fabric, every_part) + "\n";
  for (const auto& [what, why] : report.refused)
    text += fmt::format("not run: {}: {}\n", what, why);
  return text + summary_of(report);
}

std::string json_of(const ClusterReport& report) {
  const std::vector<RunComparison> steps = report.steps();
  Json json{{"compute", report.compute}, {"fabrics", Json::array()}};
  if (!steps.empty()) {
    json["median_error"] = median_error(steps);
    json["worst_error"] = worst_error(steps);
  }
  for (const FabricReport& fabric : report.fabrics) json["fabrics"].push_back(json_of(fabric));
  json["not_run"] = Json::array();
  for (const auto& [what, why] : report.refused)
    json["not_run"].push_back({{"what", what}, {"why", why}});
  return sim::json_text(json, 1);
}

}  // namespace stepcast::validate
