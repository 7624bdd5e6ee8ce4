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
#include "sim/told/json.hpp"
#include "sim/told/metrics.hpp"
#include "sim/told/path_edges.hpp"

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

void tell_chain(ToldSection& out, const Why& why) {
  const NamedPath& path = why.path;
  const std::int64_t gpus = why.report.scenario.gpus, simulated = why.report.simulated_ranks;
  out.say(fmt::format("step {}: a chain of {} through {}{}", to_text(path.length),
                      plural(std::ssize(path.edges), "edge"), plural(path.ranks, "rank"),
                      gpus > simulated
                          ? fmt::format(" ({} of {} simulated, the others are like one of them)",
                                        grouped(simulated), grouped(gpus))
                          : ""));
  out.say(fmt::format("memory: {} per GPU of {}, P(fits) {}", to_text(why.report.memory.needed()),
                      to_text(why.report.scenario.node.gpu.memory), percent(*why.report.p_fits)));
  if (why.report.scenario.plan.pipeline > 1)
    out.say(fmt::format("filling the pipeline {} ({}), draining it {} ({})", to_text(path.fill),
                        share_of_step(path.fill, why), to_text(path.drain),
                        share_of_step(path.drain, why)));
  out.say(path.ties == 0
              ? "no other chain is exactly as long"
              : fmt::format("at {} another chain is exactly as long", plural(path.ties, "place")));
}

using Holds = TextTable::Holds;

/// A column of whole numbers.
TextTable::Column whole(std::string heading, std::string key) {
  return TextTable::Column{std::move(heading), std::move(key)}.of(Holds::count);
}

TextTable shared_columns() {
  return {{"links shared on the path", "link", left},
          filed("rivals", Holds::texts),
          whole("longer by", "time_ps"),
          {"with", "", left}};
}

TextTable next_columns() {
  return {{"next: chains within 1 % of the step", "", left},
          filed("what", Holds::text),
          {"last edge", "name", left},
          filed("rank", Holds::count),
          whole("stage", "stage"),
          filed("lane", Holds::text),
          whole("slack", "slack_ps"),
          whole("places", "places")};
}

TextTable slack_columns() {
  return {TextTable::Column{"stages that may go slower", "stage", left}.of(Holds::count),
          whole("slack", "slack_ps"),
          filed("slack_is_more", Holds::flag),
          filed("pace"),
          {"clock", "clock_hz"},
          {"a GPU draws", "gpu_w"},
          {"then", "slowed_gpu_w"}};
}

TextTable path_columns() {
  return {{"critical path", "what", left},
          whole("stage", "stage"),
          whole("time", "time_ps"),
          {"share"},
          whole("edges", "edges")};
}

TextTable slopes_columns() {
  return {{"what would move it", "quantity", left},
          TextTable::Column{"now", "now"}.of(Holds::text),
          filed("more_is_faster", Holds::flag),
          {"elasticity", "elasticity"},
          {"half", "step_at_half_s"},
          {"twice", "step_at_twice_s"},
          filed("without_effect", Holds::flag),
          {"binds next", "", left},
          filed("binds_next/what", Holds::text),
          filed("binds_next/factor"),
          filed("binds_next/from", Holds::text)};
}

TextTable levers_columns() {
  return {{"what if", "what", left},
          {"as", "key", left},
          {"step", "step_s"},
          {"change"},
          filed("refused", Holds::text)};
}

TextTable shared_table(const Why& why, std::size_t top) {
  TextTable table = shared_columns();
  for (const SharedLink& link : why.path.shared)
    table.row({link.link,
               kept(link.rivals),
               {to_text(link.time), link.time.count()},
               fmt::format("{}", fmt::join(link.rivals, ", "))},
              table.num_rows() < top ? TextTable::For::all : TextTable::For::files);
  return table;
}

TextTable next_table(const Why& why, std::size_t top) {
  TextTable table = next_columns();
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
  out.table("", slopes_table(why));
  if (!idle.empty()) out.say("without effect: " + idle);
  out.say("elasticity: per cent of the step per per cent of the quantity, NCCL's choices frozen:");
  for (const std::string& choice : why.slopes.frozen) out.say("  " + choice);
  if (std::ranges::any_of(why.slopes.rows, [](const auto& row) { return !row.elasticity; }))
    out.say("a jump: the least change makes NCCL choose otherwise, or links shared that were not");
  out.say("half and twice: the change of the step, simulated anew, NCCL choosing again");
}

bool none_may(const PipelineSlack& slack) {
  return std::ranges::all_of(slack.stages, [](const StageSlack& s) { return s.pace == 1.0; });
}

TextTable slack_table(const PipelineSlack& slack) {
  const bool none = none_may(slack);
  TextTable table = slack_columns();
  for (const StageSlack& s : slack.stages)
    table.row({counted(s.stage),
               {(s.at_least ? ">= " : "") + to_text(s.slack), s.slack.count()},
               kept(s.at_least),
               kept(s.pace),
               {fmt::format("{} ({})", to_text(s.clock), percent(s.pace)), s.clock.value},
               {to_text(s.now), s.now.value},
               {to_text(s.then), s.then.value}},
              none ? TextTable::For::files : TextTable::For::all);
  return table;
}

/// Stages that may go slower.
void tell_slack(ToldSection& out, const PipelineSlack& slack) {
  if (slack.stages.empty()) return;
  const bool none = none_may(slack);
  out.table("", slack_table(slack));
  if (none) {
    out.say();
    return out.say("no stage of the pipeline may go slower at the same step");
  }
  const std::string now = to_text(slack.step), slowed = to_text(slack.slowed);
  out.say(fmt::format(
      "at these clocks between the first and the last micro-batch the step takes {} and the GPUs' "
      "energy is {} less",
      slowed == now ? slowed + " as before" : slowed + " instead of " + now, percent(slack.saved)));
  out.say(
      "slack: what a stage's products and attention may take longer in a step, the other stages as "
      "they are;");
  out.say("how rate and power follow the clock is a law of low confidence (docs/cost.md)");
}

/// What failures leave, and the whole run, where the scenario asks: under the keys of `stepcast run
/// --json`.
void tell_costs(ToldSection& out, const StepReport& report) {
  if (report.goodput)
    out.blocks.emplace_back(Listing{"Failures and goodput", goodput_text(report)});
  if (!report.whole_run) return;
  out.say();
  out.blocks.emplace_back(Listing{"The whole run", whole_run_text(report)});
}

}  // namespace

TextTable path_table(const Why& why, std::size_t top) {
  TextTable table = path_columns();
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
  TextTable table = slopes_columns();
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
  TextTable table = levers_columns();
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

namespace {

Form<PipelineSlack> slack_form() {
  using S = const PipelineSlack&;
  return Form<PipelineSlack>("slack")
      .has("step_ps", "As it is.", [](S s) { return s.step.count(); })
      .has("slowed_step_ps", "With every stage at its pace.", [](S s) { return s.slowed.count(); })
      .has("gpu_energy_saved", "Share of the GPUs' energy.", [](S s) { return s.saved; })
      .table("stages", "Stages that may go slower.", slack_columns(), slack_table);
}

Form<Why> made_why_form() {
  using W = const Why&;
  Form<Why> out;
  out.has("step_s", "The step.", [](W w) { return seconds(w.path.length); })
      .has("step_ps", "The same.", [](W w) { return w.path.length.count(); })
      .has("simulated_ranks", "The others are like one of them.",
           [](W w) { return w.report.simulated_ranks; })
      .has("fill_s", "Filling the pipeline.", [](W w) { return seconds(w.path.fill); })
      .has("drain_s", "Draining it.", [](W w) { return seconds(w.path.drain); })
      .has("ranks_that_end_last", "", [](W w) { return w.path.ends; })
      .has("ties", "Places where another chain comes at the same instant.",
           [](W w) { return w.path.ties; })
      .has("p_fits", std::string(find_metric("p_fits")->meaning),
           [](W w) { return *w.report.p_fits; })
      .table("parts", "The critical path by kind of edge and stage.", path_columns(),
             [](W w) { return path_table(w, 0); })
      .table("shared", "Links that the path shares.", shared_columns(),
             [](W w) { return shared_table(w, 0); })
      .table("next", "Chains within 1 % of the step.", next_columns(),
             [](W w) { return next_table(w, 0); })
      .table("slopes",
             "What would move the step: per cent of it per per cent of the quantity, and the step "
             "at half and twice as much.",
             slopes_columns(), slopes_table)
      .has("frozen", "NCCL's choices that the slopes keep.", [](W w) { return w.slopes.frozen; })
      .table("levers", "What could be otherwise than it is.", levers_columns(),
             [](W w) { return w.levers.empty() ? std::nullopt : std::optional(levers_table(w)); })
      .object("slack", "Stages that may go slower at the same step.", slack_form(),
              [](W w) { return w.slack.stages.empty() ? nullptr : &w.slack; })
      .object("failures", "As of stepcast run.", failures_form(),
              [](W w) { return w.report.goodput ? &w.report : nullptr; });
  for (const Metric& metric : metrics())
    if (metric.key.starts_with("run.") && metric.of_step != nullptr)
      add_metric<Why>(out, metric, [take = metric.of_step](W w) { return take(w.report); });
  out.list("edges", "The path, edge by edge.", edge_form(), [](W w) { return edges_of(w.path); })
      .has("assumptions", "What the forecast rests on that nobody measured.",
           [](W w) {
             auto assumed = assumptions(w.report.scenario);
             return assumed.empty() ? std::nullopt : std::optional(std::move(assumed));
           })
      .has("warnings", "What to know before trusting the numbers.", [](W w) { return w.warnings; });
  return out;
}

}  // namespace

const Form<Why>& why_form() {
  static const Form<Why> form = made_why_form();
  return form;
}

ToldSection told_of(const Why& why, std::size_t top) {
  const std::vector<std::string> assumed = assumptions(why.report.scenario);
  ToldSection out{"Critical path", {}};
  for (const std::string& one : assumed) out.say("assumed: " + one);
  for (const std::string& one : why.warnings) out.say("warning: " + one);
  tell_chain(out, why);
  out.table("", path_table(why, top));
  out.table("", shared_table(why, top));
  if (why.path.next.empty()) {
    out.say();
    out.say("no other chain comes within 1 % of the step");
  }
  out.table("", next_table(why, top));
  tell_slopes(out, why);
  if (!why.levers.empty()) out.table("", levers_table(why));
  tell_slack(out, why.slack);
  tell_costs(out, why.report);
  out.keep(why_form(), why);
  return out;
}

nlohmann::ordered_json why_schema() {
  return document_schema("why", "What stepcast why prints.", why_form().schema_of());
}

}  // namespace stepcast::sim
