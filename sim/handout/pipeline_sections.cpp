#include "sim/handout/pipeline_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/units_text.hpp"
#include "sim/pictures/bar_picture.hpp"
#include "sim/pictures/gantt_picture.hpp"

namespace stepcast::sim {
namespace {

enum Pass : std::size_t { forward, backward, update, data };
const std::vector<std::string> pass_names{"forward", "backward", "update", "data communication"};

std::string stage_name(std::size_t stage) { return fmt::format("stage {}", stage); }

/// The pass of a kernel by its name in the step program; those without one belong to the pass
/// around them.
std::size_t pass_of(const TimelineEvent& e, std::size_t before) {
  if (e.name.find("backward") != std::string::npos || e.name.find("recompute") != std::string::npos)
    return backward;
  if (e.name.find("forward") != std::string::npos) return forward;
  if (e.kind == "adamw" || e.name.find("optimizer") != std::string::npos) return update;
  return before;
}

/// Kernels of the compute lane, collectives that it waits for included; and those of the data lane.
std::vector<GanttRow> gantt_rows(const StepHandout& h) {
  constexpr std::int64_t compute_lane = 0, data_lane = 2;
  std::vector<GanttRow> out;
  for (std::size_t stage = 0; stage < h.stages.size(); ++stage) {
    GanttRow compute{stage_name(stage), {}}, moved{"its data", {}};
    std::size_t pass = forward;
    for (const TimelineEvent& e : h.timeline.events) {
      if (e.rank != h.stages[stage].rank) continue;
      const double from = seconds(e.start), to = seconds(e.start + e.duration);
      if (e.lane == compute_lane) {
        pass = pass_of(e, pass);
        compute.spans.push_back({from, to, pass});
      } else if (e.lane == data_lane && e.is_collective()) {
        moved.spans.push_back({from, to, data});
      }
    }
    out.push_back(std::move(compute));
    if (!moved.spans.empty()) out.push_back(std::move(moved));
  }
  return out;
}

TextTable spans_table(const GanttPicture& picture) {
  constexpr std::size_t most_rows = 600;
  TextTable table;
  table.column("row", "", TextTable::Align::left);
  table.column("what", "", TextTable::Align::left);
  table.column("from", "s");
  table.column("to", "s");
  std::size_t rows = 0, left_out = 0;
  for (const GanttRow& row : picture.rows)
    for (const GanttSpan& span : drawn_spans(row, picture)) {
      if (++rows > most_rows)
        ++left_out;
      else
        table.row({row.label, picture.series[span.series], fmt::format("{:.6g}", span.from_s),
                   fmt::format("{:.6g}", span.to_s)});
    }
  if (left_out > 0)
    table.sentence({}, fmt::format("{} further spans: stepcast run --timeline FILE writes every "
                                   "kernel",
                                   left_out));
  return table;
}

/// Calls of one kind on one rank.
struct Calls {
  std::int64_t calls = 0;
  double bytes = 0, time_s = 0, waited_s = 0;
};

}  // namespace

ToldSection pipeline_section(const StepHandout& h) {
  const bool one = h.stages.size() == 1;
  GanttPicture picture{
      "pipeline", one ? "One rank over the step" : "Pipeline: one rank of each stage over the step",
      pass_names, gantt_rows(h)};
  for (const GanttRow& row : picture.rows)
    for (const GanttSpan& span : row.spans)
      picture.length_s = std::max(picture.length_s, span.to_s);
  ToldSection out{one ? "The step in time" : "Pipeline", {}};
  out.blocks.emplace_back(Chart{picture.name, picture.title, gantt_picture(picture),
                                spans_table(picture),
                                "Collectives inside a pass are part of it; gaps are bubble, "
                                "waiting and the host."});
  return out;
}

std::optional<ToldSection> collectives_section(const StepHandout& h) {
  std::map<std::int64_t, std::size_t> stage_of;
  for (std::size_t i = 0; i < h.stages.size(); ++i) stage_of[h.stages[i].rank] = i;
  std::map<std::tuple<std::size_t, std::string, std::string>, Calls> calls;
  std::vector<std::string> groups;
  for (const TimelineEvent& e : h.timeline.events) {
    const auto stage = stage_of.find(e.rank);
    if (!e.is_collective() || stage == stage_of.end()) continue;
    if (std::ranges::count(groups, e.group) == 0) groups.push_back(e.group);
    Calls& c = calls[{stage->second, e.group, e.kind}];
    c.calls += e.calls;
    c.bytes += static_cast<double>(e.calls) * static_cast<double>(e.bytes.value);
    c.time_s += seconds(e.duration);
    c.waited_s += seconds(e.waited);
  }
  if (calls.empty()) return std::nullopt;
  BarPicture picture{"collectives", "Time of collectives, waiting included", "s", groups};
  for (std::size_t i = 0; i < h.stages.size(); ++i)
    picture.rows.push_back({stage_name(i), std::vector<double>(groups.size())});
  TextTable table;
  table.column("stage");
  table.column("group", "", TextTable::Align::left);
  table.column("collective", "", TextTable::Align::left);
  for (const char* heading : {"calls", "bytes", "time", "of it waiting"}) table.column(heading);
  for (const auto& [key, c] : calls) {
    const auto& [stage, group, kind] = key;
    const auto at = static_cast<std::size_t>(std::ranges::find(groups, group) - groups.begin());
    picture.rows[stage].parts[at] += c.time_s;
    table.row({counted(static_cast<std::int64_t>(stage)), group, kind, counted(c.calls),
               to_text(Bytes(static_cast<std::int64_t>(c.bytes))), to_text(to_duration(c.time_s)),
               to_text(to_duration(c.waited_s))});
  }
  ToldSection out{"Collectives", {}};
  out.blocks.emplace_back(Chart{picture.name, picture.title, bar_picture(picture), std::move(table),
                                "Of one rank of each stage, hidden behind computation or not."});
  return out;
}

}  // namespace stepcast::sim
