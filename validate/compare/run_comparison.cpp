#include "validate/compare/run_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/arithmetic.hpp"
#include "engine/units_text.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::validate {
namespace {

using stepcast::to_text;

using Json = nlohmann::ordered_json;
using Rows = std::vector<MeasuredAndSimulated>;

double relative(double predicted, double measured) {
  return measured > 0.0 ? predicted / measured - 1.0 : 0.0;
}

/// "gemm", "all_reduce data".
std::string label_of(const PartTime& part) {
  return part.group.empty() ? part.kind : part.kind + " " + part.group;
}

/// One row per label, kernels or collectives, the longest first.
Rows rows_by_label(const std::vector<PartTime>& measured, const std::vector<PartTime>& simulated,
                   bool collectives) {
  std::map<std::string, MeasuredAndSimulated> rows;
  for (const PartTime& part : measured) {
    if (part.group.empty() == collectives) continue;
    MeasuredAndSimulated& row = rows[label_of(part)];
    row.measured += part.time;
    row.calls += part.calls;
  }
  for (const PartTime& part : simulated)
    if (part.group.empty() != collectives) rows[label_of(part)].simulated += part.time;
  Rows sorted;
  for (auto& [label, row] : rows) {
    row.what = label;
    sorted.push_back(row);
  }
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &MeasuredAndSimulated::measured);
  return sorted;
}

double spread_of(std::vector<Duration> times) {
  std::ranges::sort(times);
  const auto at = [&](double share) {
    return seconds(times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))]);
  };
  return (at(0.9) - at(0.1)) / 2 / at(0.5);
}

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

void add_row(sim::TextTable& table, const MeasuredAndSimulated& row) {
  table.row({row.what, row.calls > 0 ? fmt::format("{:g}", row.calls) : "", to_text(row.measured),
             to_text(row.simulated), row.measured > Duration{} ? signed_percent(row.error()) : ""});
}

Json json_of_row(const MeasuredAndSimulated& row) {
  return {{"what", row.what},
          {"calls", row.calls},
          {"measured_s", seconds(row.measured)},
          {"simulated_s", seconds(row.simulated)},
          {"error", row.error()}};
}

Json json_of_rows(const Rows& rows) {
  Json json = Json::array();
  for (const auto& row : rows) json.push_back(json_of_row(row));
  return json;
}

}  // namespace

double MeasuredAndSimulated::error() const {
  return relative(seconds(simulated), seconds(measured));
}

double RunComparison::memory_error() const {
  return relative(static_cast<double>(simulated_memory.value),
                  static_cast<double>(measured_memory.value));
}

RunComparison compare_run(const std::string& point, const TrainerResults& measured,
                          const sim::Timeline& measured_step, const sim::StepReport& report,
                          const sim::Timeline& simulated) {
  RunComparison c;
  c.point = point;
  c.ranks = measured.ranks;
  c.device = measured.device;
  c.step.measured = measured.step_time;
  c.step.simulated = report.step_time;
  // The parts of the step that the timeline shows: the median one.
  const StepParts parts = parts_of(measured_step);
  const Duration accounted = parts.compute + parts.exposed_total() + parts.wait + parts.bubble;
  c.parts = {
      {"compute", 0, parts.compute, report.compute},
      {"exposed communication", 0, parts.exposed_total(), report.exposed.total()},
      {"  tensor", 0, parts.exposed[0], report.exposed.tensor},
      {"  pipeline", 0, parts.exposed[1], report.exposed.pipeline},
      {"  data", 0, parts.exposed[2], report.exposed.data},
      {"  expert", 0, parts.exposed[3], report.exposed.expert},
      {"waiting for others", 0, parts.wait + parts.bubble, report.wait + report.bubble},
      {"rest", 0, std::max(measured.step_time - accounted, Duration{}), report.host},
  };
  if (report.scenario.model.experts.count == 0) c.parts.erase(c.parts.begin() + 5);
  const std::vector<PartTime> times = times_by_name(simulated);
  c.kinds = rows_by_label(measured.parts, times, false);
  c.collectives = rows_by_label(measured.parts, times, true);
  const auto& told = report.memory.parts;
  const bool whole = std::ranges::any_of(told, [](const auto& p) { return p.name == "fixed"; });
  c.measured_memory = whole ? measured.resident : measured.buffers;
  c.simulated_memory = report.memory.total();
  c.spread = spread_of(measured.step_times);
  return c;
}

std::string text_of(const RunComparison& c) {
  sim::TextTable table;
  using Align = sim::TextTable::Align;
  table.column(c.point.empty() ? "one step" : c.point, "", Align::left);
  for (const char* heading : {"calls", "measured", "simulated", "error"}) table.column(heading);
  add_row(table, c.step);
  for (const auto& row : c.parts)
    if (row.measured + row.simulated > Duration{}) add_row(table, row);
  for (const auto& row : c.kinds) add_row(table, row);
  for (const auto& row : c.collectives) add_row(table, row);
  table.row({"memory", "", to_text(c.measured_memory), to_text(c.simulated_memory),
             signed_percent(c.memory_error())});
  return table.text() +
         fmt::format("measured steps vary by +-{:.1f} % (middle 80 %)\n", 100 * c.spread);
}

std::string table_of(const std::vector<RunComparison>& points) {
  sim::TextTable table;
  table.column("point", "", sim::TextTable::Align::left);
  for (const char* heading : {"ranks", "measured", "simulated", "error", "+-", "compute", "memory"})
    table.column(heading);
  for (const RunComparison& c : points)
    table.row({c.point, std::to_string(c.ranks), to_text(c.step.measured),
               to_text(c.step.simulated), signed_percent(c.step.error()),
               fmt::format("{:.1f} %", 100 * c.spread), signed_percent(c.parts[0].error()),
               signed_percent(c.memory_error())});
  return table.text() + fmt::format(
                            "step time of {} points: median |error| {:.1f} %, worst {:.1f} "
                            "%\n",
                            points.size(), 100 * median_error(points), 100 * worst_error(points));
}

std::string json_of(const std::vector<RunComparison>& points) {
  Json json{{"median_error", median_error(points)},
            {"worst_error", worst_error(points)},
            {"points", Json::array()}};
  for (const RunComparison& c : points)
    json["points"].push_back({{"point", c.point},
                              {"ranks", c.ranks},
                              {"step", json_of_row(c.step)},
                              {"spread", c.spread},
                              {"parts", json_of_rows(c.parts)},
                              {"kinds", json_of_rows(c.kinds)},
                              {"collectives", json_of_rows(c.collectives)},
                              {"memory",
                               {{"measured_bytes", c.measured_memory.value},
                                {"simulated_bytes", c.simulated_memory.value},
                                {"error", c.memory_error()}}}});
  return sim::json_text(json, 1);
}

double worst_error(const std::vector<RunComparison>& points) {
  double worst = 0.0;
  for (const auto& c : points) worst = std::max(worst, std::abs(c.step.error()));
  return worst;
}

double median_error(const std::vector<RunComparison>& points) {
  std::vector<double> errors;
  for (const auto& c : points) errors.push_back(std::abs(c.step.error()));
  return errors.empty() ? 0.0 : median(std::move(errors));
}

}  // namespace stepcast::validate
