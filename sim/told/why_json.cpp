#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "sim/scenario/assumptions.hpp"
#include "sim/told/goodput.hpp"
#include "sim/told/metrics.hpp"
#include "sim/told/why.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

const char* word_of(Phase phase) {
  switch (phase) {
    case Phase::steady:
      return "steady";
    case Phase::fill:
      return "fill";
    case Phase::drain:
      return "drain";
  }
  throw BrokenPromise("unknown phase");
}

const char* word_of(engine::PathEdge::Kind kind) {
  switch (kind) {
    case engine::PathEdge::Kind::kernel:
      return "kernel";
    case engine::PathEdge::Kind::transfer:
      return "transfer";
    case engine::PathEdge::Kind::host:
      return "host";
  }
  throw BrokenPromise("unknown edge");
}

Json shared_json(const std::vector<SharedLink>& links) {
  Json out = Json::array();
  for (const SharedLink& link : links)
    out.push_back({{"link", link.link}, {"rivals", link.rivals}, {"time_ps", link.time.count()}});
  return out;
}

Json edge_json(const NamedEdge& e, Time begin) {
  Json out{{"kind", word_of(e.edge.kind)},
           {"what", e.what},
           {"name", e.name},
           {"rank", e.rank},
           {"stage", e.stage},
           {"lane", e.lane},
           {"begin_ps", (e.edge.from - begin).count()},
           {"length_ps", e.edge.length().count()},
           {"after", e.after},
           {"phase", word_of(e.phase)}};
  if (e.provenance) out["provenance"] = name_of(*e.provenance);
  if (e.edge.extra == Duration{}) return out;
  const bool kernel = e.edge.kind == engine::PathEdge::Kind::kernel;
  if (kernel) out["beside"] = e.beside;
  if (!kernel) out["shared"] = shared_json(e.shared);
  out[kernel ? "interference_ps" : "sharing_ps"] = e.edge.extra.count();
  return out;
}

Json seconds_or_null(const std::optional<Duration>& time) {
  return time ? Json(seconds(*time)) : Json(nullptr);
}

Json slopes_json(const Why& why) {
  Json out = Json::array();
  for (const Sensitivity& row : why.slopes.rows) {
    Json& one = out.emplace_back();
    one = {{"quantity", row.name}, {"now", row.now}, {"more_is_faster", row.is_rate}};
    one["elasticity"] = row.elasticity ? Json(*row.elasticity) : Json(nullptr);
    one["step_at_half_s"] = seconds_or_null(row.at_half);
    one["step_at_twice_s"] = seconds_or_null(row.at_twice);
    one["without_effect"] = row.without_effect(why.path.length);
    if (row.next)
      one["binds_next"] = {
          {"what", row.next->what}, {"factor", row.next->factor}, {"from", row.next->from}};
  }
  return out;
}

Json levers_json(const Why& why) {
  Json out = Json::array();
  for (const Lever& lever : why.levers) {
    Json& one = out.emplace_back(Json{{"what", lever.name}, {"key", lever.key}});
    one["step_s"] = seconds_or_null(lever.step);
    if (!lever.refused.empty()) one["refused"] = lever.refused;
  }
  return out;
}

/// The whole run under the keys of `stepcast run --json`: "run.days" is days of "run".
void add_costs(Json& out, const StepReport& report) {
  if (report.goodput) out["failures"] = goodput_json(report);
  if (!report.whole_run) return;
  constexpr std::string_view of_run = "run.";
  for (const Metric& metric : metrics())
    if (metric.key.starts_with(of_run) && metric.of_step != nullptr)
      if (const double value = metric.of_step(report); !std::isnan(value))
        out["run"][std::string(metric.key.substr(of_run.size()))] = value;
}

Json slack_json(const PipelineSlack& slack) {
  Json out{{"step_ps", slack.step.count()},
           {"slowed_step_ps", slack.slowed.count()},
           {"gpu_energy_saved", slack.saved},
           {"stages", Json::array()}};
  for (const StageSlack& s : slack.stages)
    out["stages"].push_back({{"stage", s.stage},
                             {"slack_ps", s.slack.count()},
                             {"slack_is_more", s.at_least},
                             {"pace", s.pace},
                             {"clock_hz", s.clock.value},
                             {"gpu_w", s.now.value},
                             {"slowed_gpu_w", s.then.value}});
  return out;
}

}  // namespace

std::string why_json(const Why& why) {
  const NamedPath& path = why.path;
  Json out{{"step_s", seconds(path.length)},
           {"step_ps", path.length.count()},
           {"simulated_ranks", why.report.simulated_ranks},
           {"fill_s", seconds(path.fill)},
           {"drain_s", seconds(path.drain)},
           {"ranks_that_end_last", path.ends},
           {"ties", path.ties}};
  out["parts"] = Json::array();
  for (const PathPart& part : path.parts)
    out["parts"].push_back({{"what", part.what},
                            {"stage", part.stage},
                            {"time_ps", part.time.count()},
                            {"edges", part.edges}});
  out["shared"] = shared_json(path.shared);
  out["next"] = Json::array();
  for (const NamedTie& tie : path.next)
    out["next"].push_back({{"what", tie.what},
                           {"name", tie.name},
                           {"rank", tie.rank},
                           {"stage", tie.stage},
                           {"lane", tie.lane},
                           {"slack_ps", tie.slack.count()},
                           {"places", tie.places}});
  out["slopes"] = slopes_json(why);
  out["frozen"] = why.slopes.frozen;
  if (!why.levers.empty()) out["levers"] = levers_json(why);
  if (!why.slack.stages.empty()) out["slack"] = slack_json(why.slack);
  add_costs(out, why.report);
  out["edges"] = Json::array();
  const Time begin = path.edges.empty() ? Time{} : path.edges.front().edge.from;
  for (const NamedEdge& e : path.edges) out["edges"].push_back(edge_json(e, begin));
  if (auto assumed = assumptions(why.report.scenario); !assumed.empty())
    out["assumptions"] = std::move(assumed);
  out["warnings"] = why.warnings;
  return json_text(out, 2);
}

}  // namespace stepcast::sim
