#include "sim/told/why.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/units_text.hpp"
#include "sim/scenario/assumptions.hpp"
#include "sim/told/goal_text.hpp"
#include "sim/told/goodput.hpp"
#include "sim/told/metrics.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto left = TextTable::Align::left;

std::string share_of_step(Duration part, const Why& why) {
  return percent(seconds(part) / seconds(why.path.length));
}

/// "+9.1 %"; of a time that cannot be, a dash. Files have the seconds.
TableCell changed_step(const std::optional<Duration>& there, Duration step) {
  if (!there) return "-";
  const double change = seconds(*there) / seconds(step) - 1;
  return {(change > 0 ? "+" : "") + percent(change), seconds(*there)};
}

/// Three decimals: what is less moves nothing that could be seen.
std::string elasticity_text(const Sensitivity& row) {
  if (!row.elasticity) return "a jump";
  const std::string text = fmt::format("{:+.3f}", *row.elasticity);
  return text.find_first_not_of("+-0.") == std::string::npos ? "0" : text;
}

std::string next_binds_text(const Sensitivity& row) {
  if (!row.next) return "";
  if (row.next->factor > 1.9) return row.next->what;
  return fmt::format("{} from {}", row.next->what, row.next->from);
}

std::string plural(std::int64_t n, const char* noun) {
  return fmt::format("{} {}{}", grouped(n), noun, n == 1 ? "" : "s");
}

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
  if (!kernel) {
    out["shared"] = Json::array();
    for (const SharedLink& link : e.shared)
      out["shared"].push_back(
          {{"link", link.link}, {"rivals", link.rivals}, {"time_ps", link.time.count()}});
  }
  out[kernel ? "interference_ps" : "sharing_ps"] = e.edge.extra.count();
  return out;
}

Json edges_json(const NamedPath& path) {
  Json out = Json::array();
  const Time begin = path.edges.empty() ? Time{} : path.edges.front().edge.from;
  for (const NamedEdge& e : path.edges) out.push_back(edge_json(e, begin));
  return out;
}

void tell_chain(ToldSection& out, const Why& why) {
  const NamedPath& path = why.path;
  const std::int64_t gpus = why.report.scenario.gpus, simulated = why.report.simulated_ranks;
  out.keep("step_s", seconds(path.length));
  out.keep("step_ps", path.length.count());
  out.keep("simulated_ranks", simulated);
  out.keep("fill_s", seconds(path.fill));
  out.keep("drain_s", seconds(path.drain));
  out.keep("ranks_that_end_last", path.ends);
  out.keep("ties", path.ties);
  out.say(fmt::format("step {}: a chain of {} through {}{}", to_text(path.length),
                      plural(std::ssize(path.edges), "edge"), plural(path.ranks, "rank"),
                      gpus > simulated
                          ? fmt::format(" ({} of {} simulated, the others are like one of them)",
                                        grouped(simulated), grouped(gpus))
                          : ""));
  out.keep("p_fits", *why.report.p_fits);
  out.say(fmt::format("memory: {} per GPU of {}, P(fits) {}", to_text(why.report.memory.needed()),
                      to_text(why.report.scenario.node.gpu.memory), percent(*why.report.p_fits)));
  if (why.report.scenario.plan.pipeline > 1)
    out.say(fmt::format("filling the pipeline {} ({}), draining it {} ({})", to_text(path.fill),
                        share_of_step(path.fill, why), to_text(path.drain),
                        share_of_step(path.drain, why)));
  out.say(path.ties == 0 ? "nowhere does another chain come at the same instant"
                         : fmt::format("at {} another chain comes at the same instant",
                                       plural(path.ties, "place")));
}

TextTable shared_table(const Why& why, std::size_t top) {
  TextTable table{{"links shared on the path", "link", left},
                  filed("rivals"),
                  {"longer by", "time_ps"},
                  {"with", "", left}};
  for (const SharedLink& link : why.path.shared)
    table.row({link.link,
               kept(link.rivals),
               {to_text(link.time), link.time.count()},
               fmt::format("{}", fmt::join(link.rivals, ", "))},
              table.num_rows() < top ? TextTable::For::all : TextTable::For::files);
  return table;
}

TextTable next_table(const Why& why, std::size_t top) {
  TextTable table{{"next: chains within 1 % of the step", "", left},
                  filed("what"),
                  {"last edge", "name", left},
                  filed("rank"),
                  {"stage", "stage"},
                  filed("lane"),
                  {"slack", "slack_ps"},
                  {"places", "places"}};
  for (const NamedTie& tie : why.path.next)
    table.row({tie.what == tie.lane ? tie.what : tie.what + " on " + tie.lane,
               kept(tie.what),
               tie.name,
               kept(tie.rank),
               counted(tie.stage),
               kept(tie.lane),
               {to_text(tie.slack), tie.slack.count()},
               counted(tie.places)},
              table.num_rows() < top ? TextTable::For::all : TextTable::For::files);
  return table;
}

void tell_slopes(ToldSection& out, const Why& why) {
  std::string idle;
  for (const Sensitivity& row : why.slopes.rows)
    if (row.without_effect(why.path.length)) idle += (idle.empty() ? "" : ", ") + row.name;
  out.table("slopes", slopes_table(why));
  if (!idle.empty()) out.say("without effect: " + idle);
  out.say("elasticity: per cent of the step per per cent of the quantity, NCCL's choices frozen:");
  for (const std::string& choice : why.slopes.frozen) out.say("  " + choice);
  out.keep("frozen", why.slopes.frozen);
  if (std::ranges::any_of(why.slopes.rows, [](const auto& row) { return !row.elasticity; }))
    out.say("a jump: the least change makes NCCL choose otherwise, or links shared that were not");
  out.say("half and twice: the change of the step, simulated anew, NCCL choosing again");
}

/// Stages that may go slower.
void tell_slack(ToldSection& out, const PipelineSlack& slack) {
  if (slack.stages.empty()) return;
  const bool none =
      std::ranges::all_of(slack.stages, [](const StageSlack& s) { return s.pace == 1.0; });
  out.keep("slack/step_ps", slack.step.count());
  out.keep("slack/slowed_step_ps", slack.slowed.count());
  out.keep("slack/gpu_energy_saved", slack.saved);
  TextTable table{{"stages that may go slower", "stage", left},
                  {"slack", "slack_ps"},
                  filed("slack_is_more"),
                  filed("pace"),
                  {"clock", "clock_hz"},
                  {"a GPU draws", "gpu_w"},
                  {"then", "slowed_gpu_w"}};
  for (const StageSlack& s : slack.stages)
    table.row({counted(s.stage),
               {(s.at_least ? ">= " : "") + to_text(s.slack), s.slack.count()},
               kept(s.at_least),
               kept(s.pace),
               {fmt::format("{} ({})", to_text(s.clock), percent(s.pace)), s.clock.value},
               {to_text(s.now), s.now.value},
               {to_text(s.then), s.then.value}},
              none ? TextTable::For::files : TextTable::For::all);
  out.table("slack/stages", std::move(table));
  if (none) {
    out.say();
    return out.say("no stage of the pipeline may go slower at the same step");
  }
  out.say(fmt::format(
      "at these clocks between the first and the last micro-batch the step takes {} instead of {} "
      "and the GPUs' energy is {} less",
      to_text(slack.slowed), to_text(slack.step), percent(slack.saved)));
  out.say(
      "slack: what a stage's products and attention may take longer in a step, the other stages as "
      "they are;");
  out.say("how rate and power follow the clock is a law of low confidence (docs/cost.md)");
}

/// What failures leave, and the whole run, where the scenario asks: under the keys of `stepcast run
/// --json`.
void tell_costs(ToldSection& out, const StepReport& report) {
  if (report.goodput) {
    out.blocks.emplace_back(Listing{"Failures and goodput", goodput_text(report)});
    out.keep_json("failures", [&report] { return goodput_json(report); });
  }
  if (!report.whole_run) return;
  out.say();
  out.blocks.emplace_back(Listing{"The whole run", whole_run_text(report)});
  constexpr std::string_view of_run = "run.";
  for (const Metric& metric : metrics())
    if (metric.key.starts_with(of_run) && metric.of_step != nullptr)
      if (const double value = metric.of_step(report); !std::isnan(value))
        out.keep("run/" + std::string(metric.key.substr(of_run.size())), value);
}

}  // namespace

TextTable path_table(const Why& why, std::size_t top) {
  TextTable table{{"critical path", "what", left},
                  {"stage", "stage"},
                  {"time", "time_ps"},
                  {"share"},
                  {"edges", "edges"}};
  const auto add = [&](const std::string& what, TableCell stage, Duration time, std::int64_t edges,
                       TextTable::For readers) {
    table.row({what,
               std::move(stage),
               {to_text(time), time.count()},
               share_of_step(time, why),
               counted(edges)},
              readers);
  };
  Duration rest{};
  std::int64_t rest_edges = 0;
  for (const PathPart& part : why.path.parts) {
    const bool shown = table.num_rows() < top;
    add(part.what, counted(part.stage), part.time, part.edges,
        shown ? TextTable::For::all : TextTable::For::files);
    if (shown) continue;
    rest += part.time;
    rest_edges += part.edges;
  }
  if (rest_edges > 0) add("the rest", "", rest, rest_edges, TextTable::For::people);
  add("step", "", why.path.length, std::ssize(why.path.edges), TextTable::For::people);
  return table;
}

TextTable slopes_table(const Why& why) {
  TextTable table{{"what would move it", "quantity", left},
                  {"now", "now"},
                  filed("more_is_faster"),
                  {"elasticity", "elasticity"},
                  {"half", "step_at_half_s"},
                  {"twice", "step_at_twice_s"},
                  filed("without_effect"),
                  {"binds next", "", left},
                  filed("binds_next/what"),
                  filed("binds_next/factor"),
                  filed("binds_next/from")};
  const Duration step = why.path.length;
  for (const Sensitivity& row : why.slopes.rows) {
    const bool idle = row.without_effect(step);
    TableCells cells{row.name,
                     row.now,
                     kept(row.is_rate),
                     {elasticity_text(row), row.elasticity},
                     changed_step(row.at_half, step),
                     changed_step(row.at_twice, step),
                     kept(idle),
                     next_binds_text(row)};
    if (row.next)
      for (const Exact& exact :
           {Exact(row.next->what), Exact(row.next->factor), Exact(row.next->from)})
        cells.push_back(kept(exact));
    table.row(std::move(cells), idle ? TextTable::For::files : TextTable::For::all);
  }
  return table;
}

TextTable levers_table(const Why& why) {
  TextTable table{{"what if", "what", left},
                  {"as", "key", left},
                  {"step", "step_s"},
                  {"change"},
                  filed("refused")};
  for (const Lever& lever : why.levers) {
    if (lever.step)
      table.row({lever.name,
                 lever.key,
                 {to_text(*lever.step), seconds(*lever.step)},
                 changed_step(lever.step, why.path.length).text});
    else
      table.sentence({lever.name, lever.key, "-", "-", kept(lever.refused)}, 2, lever.refused);
  }
  return table;
}

ToldSection told_of(const Why& why, std::size_t top) {
  const std::vector<std::string> assumed = assumptions(why.report.scenario);
  ToldSection out{"Critical path", {}};
  for (const std::string& one : assumed) out.say("assumed: " + one);
  for (const std::string& one : why.warnings) out.say("warning: " + one);
  tell_chain(out, why);
  out.table("parts", path_table(why, top));
  out.table("shared", shared_table(why, top));
  if (why.path.next.empty()) {
    out.say();
    out.say("no other chain comes within 1 % of the step");
  }
  out.table("next", next_table(why, top));
  tell_slopes(out, why);
  if (!why.levers.empty()) out.table("levers", levers_table(why));
  tell_slack(out, why.slack);
  tell_costs(out, why.report);
  out.keep_json("edges", [&why] { return edges_json(why.path); });
  if (!assumed.empty()) out.keep("assumptions", assumed);
  out.keep("warnings", why.warnings);
  return out;
}

}  // namespace stepcast::sim
