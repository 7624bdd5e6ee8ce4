#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"
#include "sim/scenario/assumptions.hpp"
#include "sim/told/goal_text.hpp"
#include "sim/told/goodput.hpp"
#include "sim/told/why.hpp"

namespace stepcast::sim {
namespace {

std::string share_of_step(Duration part, const Why& why) {
  return percent(seconds(part) / seconds(why.path.length));
}

/// "+9.1 %"; of a time that cannot be, a dash.
std::string change_text(const std::optional<Duration>& there, Duration step) {
  if (!there) return "-";
  const double change = seconds(*there) / seconds(step) - 1;
  return (change > 0 ? "+" : "") + percent(change);
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

}  // namespace

TextTable path_table(const Why& why, std::size_t top) {
  TextTable table;
  table.column("critical path", "", TextTable::Align::left);
  table.column("stage");
  table.column("time");
  table.column("share");
  table.column("edges");
  Duration rest{};
  std::int64_t rest_edges = 0;
  for (std::size_t p = 0; p < why.path.parts.size(); ++p) {
    const PathPart& part = why.path.parts[p];
    if (p < top) {
      table.row({part.what, grouped(part.stage), to_text(part.time), share_of_step(part.time, why),
                 grouped(part.edges)});
    } else {
      rest += part.time;
      rest_edges += part.edges;
    }
  }
  if (rest_edges > 0)
    table.row({"the rest", "", to_text(rest), share_of_step(rest, why), grouped(rest_edges)});
  table.row({"step", "", to_text(why.path.length), share_of_step(why.path.length, why),
             grouped(std::ssize(why.path.edges))});
  return table;
}

TextTable slopes_table(const Why& why) {
  TextTable table;
  table.column("what would move it", "", TextTable::Align::left);
  table.column("now");
  table.column("elasticity");
  table.column("half");
  table.column("twice");
  table.column("binds next", "", TextTable::Align::left);
  const Duration step = why.path.length;
  for (const Sensitivity& row : why.slopes.rows) {
    if (row.without_effect(step)) continue;
    table.row({row.name, row.now, elasticity_text(row), change_text(row.at_half, step),
               change_text(row.at_twice, step), next_binds_text(row)});
  }
  return table;
}

TextTable levers_table(const Why& why) {
  TextTable table;
  table.column("what if", "", TextTable::Align::left);
  table.column("as", "", TextTable::Align::left);
  table.column("step");
  table.column("change");
  for (const Lever& lever : why.levers) {
    if (lever.step)
      table.row(
          {lever.name, lever.key, to_text(*lever.step), change_text(lever.step, why.path.length)});
    else
      table.sentence({lever.name, lever.key}, lever.refused);
  }
  return table;
}

namespace {

std::string plural(std::int64_t n, const char* noun) {
  return fmt::format("{} {}{}", grouped(n), noun, n == 1 ? "" : "s");
}

std::string head_text(const Why& why) {
  const NamedPath& path = why.path;
  std::string out = fmt::format("step {}: a chain of {} through {}", to_text(path.length),
                                plural(std::ssize(path.edges), "edge"), plural(path.ranks, "rank"));
  if (why.report.scenario.gpus > why.report.simulated_ranks)
    out += fmt::format(" ({} of {} simulated, the others are like one of them)",
                       grouped(why.report.simulated_ranks), grouped(why.report.scenario.gpus));
  out += "\n";
  if (why.report.scenario.plan.pipeline > 1)
    out += fmt::format("filling the pipeline {} ({}), draining it {} ({})\n", to_text(path.fill),
                       share_of_step(path.fill, why), to_text(path.drain),
                       share_of_step(path.drain, why));
  if (path.ties == 0) return out + "nowhere does another chain come at the same instant\n";
  return out +
         fmt::format("at {} another chain comes at the same instant\n", plural(path.ties, "place"));
}

std::string shared_text(const Why& why, std::size_t top) {
  if (why.path.shared.empty()) return "";
  TextTable table;
  table.column("links shared on the path", "", TextTable::Align::left);
  table.column("longer by");
  table.column("with", "", TextTable::Align::left);
  for (std::size_t l = 0; l < std::min(top, why.path.shared.size()); ++l) {
    const SharedLink& link = why.path.shared[l];
    table.row({link.link, to_text(link.time), fmt::format("{}", fmt::join(link.rivals, ", "))});
  }
  return "\n" + table.text();
}

std::string next_text(const Why& why, std::size_t top) {
  if (why.path.next.empty()) return "\nno other chain comes within 1 % of the step\n";
  TextTable table;
  table.column("next: chains within 1 % of the step", "", TextTable::Align::left);
  table.column("last edge", "", TextTable::Align::left);
  table.column("stage");
  table.column("slack");
  table.column("places");
  for (std::size_t n = 0; n < std::min(top, why.path.next.size()); ++n) {
    const NamedTie& tie = why.path.next[n];
    table.row({tie.what == tie.lane ? tie.what : tie.what + " on " + tie.lane, tie.name,
               grouped(tie.stage), to_text(tie.slack), grouped(tie.places)});
  }
  return "\n" + table.text();
}

std::string slopes_text(const Why& why) {
  std::string idle;
  for (const Sensitivity& row : why.slopes.rows)
    if (row.without_effect(why.path.length)) idle += (idle.empty() ? "" : ", ") + row.name;
  std::string out = "\n" + slopes_table(why).text();
  if (!idle.empty()) out += "without effect: " + idle + "\n";
  out += "elasticity: per cent of the step per per cent of the quantity, NCCL's choices frozen:\n";
  for (const std::string& choice : why.slopes.frozen) out += "  " + choice + "\n";
  if (std::ranges::any_of(why.slopes.rows, [](const auto& row) { return !row.elasticity; }))
    out += "a jump: the least change makes NCCL choose otherwise, or links shared that were not\n";
  return out + "half and twice: the change of the step, simulated anew, NCCL choosing again\n";
}

std::string levers_text(const Why& why) {
  return why.levers.empty() ? "" : "\n" + levers_table(why).text();
}

/// "1.62 GHz (91 %)"
std::string clock_text(const StageSlack& stage) {
  return fmt::format("{} ({})", to_text(stage.clock), percent(stage.pace));
}

/// What failures leave, and the whole run, where the scenario asks.
std::string costs_text(const StepReport& report) {
  std::string out = goodput_text(report);
  if (report.whole_run) out += "\n" + whole_run_text(report);
  return out;
}

}  // namespace

std::string slack_text(const PipelineSlack& slack) {
  if (slack.stages.empty()) return "";
  if (std::ranges::all_of(slack.stages, [](const StageSlack& s) { return s.pace == 1.0; }))
    return "\nno stage of the pipeline may go slower at the same step\n";
  TextTable table;
  table.column("stages that may go slower", "", TextTable::Align::left);
  table.column("slack");
  table.column("clock");
  table.column("a GPU draws");
  table.column("then");
  for (const StageSlack& stage : slack.stages)
    table.row({grouped(stage.stage), (stage.at_least ? ">= " : "") + to_text(stage.slack),
               clock_text(stage), to_text(stage.now), to_text(stage.then)});
  return "\n" + table.text() +
         fmt::format(
             "at these clocks between the first and the last micro-batch the step takes {} instead "
             "of {} and the GPUs' energy "
             "is {} less\nslack: what a stage's products and attention may take longer in a step, "
             "the other stages as they are;\nhow rate and power follow the clock is a law of low "
             "confidence (docs/cost.md)\n",
             to_text(slack.slowed), to_text(slack.step), percent(slack.saved));
}

std::string why_text(const Why& why, std::size_t top) {
  std::string out;
  for (const std::string& assumed : assumptions(why.report.scenario))
    out += "assumed: " + assumed + "\n";
  for (const std::string& warning : why.warnings) out += "warning: " + warning + "\n";
  return out + head_text(why) + "\n" + path_table(why, top).text() + shared_text(why, top) +
         next_text(why, top) + slopes_text(why) + levers_text(why) + slack_text(why.slack) +
         costs_text(why.report);
}

}  // namespace stepcast::sim
