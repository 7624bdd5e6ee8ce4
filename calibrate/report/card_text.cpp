// A node's card as a page of text: a line of each group of rows, and the rows below par.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "calibrate/report/card.hpp"
#include "engine/arithmetic.hpp"
#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::calibrate {
namespace {

constexpr std::size_t most_below = 12;  // lines of one page

/// The words of a row's name that its group does not say.
std::string rest_of(const CardRow& row) {
  std::istringstream name(row.name);
  std::string rest, word;
  while (name >> word) {
    const bool said = (" " + row.group + " ").find(" " + word + " ") != std::string::npos;
    if (!said) rest += (rest.empty() ? "" : " ") + word;
  }
  return rest;
}

std::string percent_slower(double ratio) {
  return ratio < 3.0 ? fmt::format("{:.0f} % slower", 100.0 * (ratio - 1.0))
                     : fmt::format("{:.3g} times as slow", ratio);
}

/// Of one group: how many, how far from par in the middle and at worst.
struct GroupLine {
  std::vector<double> ratios;
  std::size_t measured = 0, below = 0;
  const CardRow* worst = nullptr;
};

std::string groups_text(const Card& card) {
  std::vector<std::string> order;
  std::map<std::string, GroupLine> groups;
  for (const CardRow& row : card.rows) {
    GroupLine& line = groups[row.group];
    if (line.ratios.empty()) order.push_back(row.group);
    line.ratios.push_back(row.ratio);
    if (row.measured) ++line.measured;
    if (row.is_below(card.par)) ++line.below;
    if (line.worst == nullptr || row.ratio > line.worst->ratio) line.worst = &row;
  }
  sim::TextTable table;
  table.column("", "", sim::TextTable::Align::left);
  for (const char* heading : {"rows", "measured par", "below par"}) table.column(heading);
  table.column("median", "time/par");
  table.column("worst", "time/par");
  table.column("at worst", "(no par: one of them)", sim::TextTable::Align::left);
  for (const std::string& group : order) {
    const GroupLine& line = groups[group];
    table.row({group, std::to_string(line.ratios.size()), std::to_string(line.measured),
               std::to_string(line.below), fmt::format("{:.2f}", median(line.ratios)),
               fmt::format("{:.2f}", line.worst->ratio),
               fmt::format("{}, par {}", line.worst->figure, line.worst->par)});
  }
  for (const Unmatched& one : card.unmatched)
    table.row({one.group, std::to_string(one.rows), "-", "-", "-", "-", one.figure});
  return table.text();
}

std::string change_text(const ForecastChange& one) {
  if (!one.without || !one.with) return "-";
  const double change = 100 * (seconds(*one.with) / seconds(*one.without) - 1);
  return std::abs(change) < 0.05 ? "none" : fmt::format("{:+.1f} %", change);
}

std::string forecasts_text(const std::vector<ForecastChange>& forecasts) {
  std::string missing;
  sim::TextTable table;
  table.column("forecast", "", sim::TextTable::Align::left);
  for (const char* heading : {"without", "with these rows", "change"}) table.column(heading);
  const auto text = [](const std::optional<Duration>& time) {
    return time ? stepcast::to_text(*time) : "-";
  };
  for (const ForecastChange& one : forecasts) {
    if (!one.with) missing += fmt::format("{}: {}\n", one.title, one.missing);
    table.row({one.title, text(one.without), text(one.with), change_text(one)});
  }
  return "\n" + table.text() + missing;
}

}  // namespace

std::string to_text(const Card& card) {
  const std::vector<const CardRow*> below = card.below();
  const std::size_t num_below = card.num_below();
  std::string text = fmt::format("{} held against {}: ", fmt::join(card.gpus, ", "),
                                 fmt::join(card.par.tables, ", "));
  if (card.rows.empty())
    text +=
        "nothing is known to hold it against; --against FILE.h5 takes a table of such a machine\n";
  else if (below.empty())
    text += fmt::format("nothing is more than {:.0f} % slower\n", 100 * card.par.slack);
  else
    text += fmt::format("{} of {} rows are more than {:.0f} % slower, {} is {}\n", num_below,
                        card.rows.size(), 100 * card.par.slack, below[0]->group,
                        percent_slower(below[0]->ratio));
  for (const std::string& machine : card.machines) text += "  " + machine + "\n";
  text += "\n" + groups_text(card);
  if (!below.empty()) text += "\nbelow par\n";
  for (std::size_t i = 0; i < std::min(below.size(), most_below); ++i)
    text += fmt::format("  {} ({}): {}, {} {}: {}\n", below[i]->group, rest_of(*below[i]),
                        below[i]->figure, below[i]->measured ? "measured" : "forecast",
                        below[i]->par, percent_slower(below[i]->ratio));
  if (below.size() > most_below) text += fmt::format("  and {} more\n", below.size() - most_below);
  if (!card.forecasts.empty()) text += forecasts_text(card.forecasts);
  return text;
}

}  // namespace stepcast::calibrate
