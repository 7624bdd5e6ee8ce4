#include <fmt/format.h>

#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"
#include "sim/report/why.hpp"

namespace stepcast::sim {
namespace {

std::string share_of_step(Duration part, const Why& why) {
  return percent(seconds(part) / seconds(why.path.length));
}

std::string plural(std::int64_t n, const char* noun) {
  return fmt::format("{} {}{}", grouped(n), noun, n == 1 ? "" : "s");
}

std::string head_text(const Why& why) {
  const NamedPath& path = why.path;
  std::string out = fmt::format("step {}: a chain of {} through {}", to_text(path.length),
                                plural(std::ssize(path.edges), "edge"), plural(path.ranks, "rank"));
  if (why.report.scenario.gpus > why.report.simulated_ranks)
    out += fmt::format(" ({} simulated, each for those that are alike)",
                       grouped(why.report.simulated_ranks));
  out += "\n";
  if (why.report.scenario.plan.pipeline > 1)
    out += fmt::format("filling the pipeline {} ({}), draining it {} ({})\n", to_text(path.fill),
                       share_of_step(path.fill, why), to_text(path.drain),
                       share_of_step(path.drain, why));
  return out + fmt::format("{} where another chain comes at the same instant\n",
                           plural(path.ties, "place"));
}

std::string parts_text(const Why& why, std::size_t top) {
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
    table.row({tie.what + " on " + tie.lane, tie.name, grouped(tie.stage), to_text(tie.slack),
               grouped(tie.places)});
  }
  return "\n" + table.text();
}

}  // namespace

std::string why_text(const Why& why, std::size_t top) {
  std::string out;
  for (const std::string& warning : why.warnings) out += "warning: " + warning + "\n";
  return out + head_text(why) + parts_text(why, top) + next_text(why, top);
}

}  // namespace stepcast::sim
