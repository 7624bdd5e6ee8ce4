// The trends as a table: the band over sets of assumptions, and where each holds.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/files/text_table.hpp"
#include "sim/program/progress.hpp"
#include "validate/study/trends.hpp"

namespace stepcast::validate {
namespace {

using Align = sim::TextTable::Align;

std::string figure(double value) { return fmt::format("{:+.1f}", value); }

/// "all", "none", or the sets' names.
std::string holders(const std::vector<std::string>& names, std::size_t sets) {
  if (names.empty()) return "none";
  if (names.size() == sets) return "all";
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

std::string trends_text(sim::Session& session, const std::vector<StudySet>& sets, unsigned threads,
                        bool quiet) {
  std::vector<StudyRuns> runs;
  for (const StudySet& set : sets) runs.emplace_back(session, set, threads);
  sim::TextTable table;
  table.column("");
  table.column("statement, in percent or as said", "", Align::left);
  table.column("the study", "", Align::left);
  table.column("least");
  table.column("most");
  table.column("holds in", "", Align::left);
  std::vector<std::size_t> held(sets.size());
  std::size_t in_some = 0;
  sim::Progress progress(trends().size() * sets.size(), sim::Progress::style_for(quiet), "answers");
  std::size_t done = 0;
  for (const Trend& trend : trends()) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const double value = trend.value(runs[i]);
      least = std::min(least, value);
      most = std::max(most, value);
      if (trend.holds(value)) names.push_back(sets[i].name);
      held[i] += trend.holds(value);
      progress.show(++done);
    }
    in_some += !names.empty();
    table.row({std::to_string(trend.number), trend.statement, trend.expected, figure(least),
               figure(most), holders(names, sets.size())});
  }
  std::string out = table.text();
  out += fmt::format("\n{} statements, {} hold in one set or more:\n", trends().size(), in_some);
  for (std::size_t i = 0; i < sets.size(); ++i)
    out += fmt::format("  {:>2} in {:<9} {}\n", held[i], sets[i].name, sets[i].says);
  return out;
}

}  // namespace stepcast::validate
