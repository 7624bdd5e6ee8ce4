// A comparison as a waterfall.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/units_text.hpp"
#include "sim/compare/comparison.hpp"
#include "sim/pictures/waterfall_picture.hpp"

namespace stepcast::sim {
namespace {

using Bars = std::vector<WaterfallBar>;

/// What the bars leave to the end, as the last of them: a trace's parts need not be all.
Bars with_rest(Bars bars, double whole_s, const char* label) {
  double rest = whole_s;
  for (const WaterfallBar& bar : bars) rest -= bar.change_s;
  if (std::abs(rest) > 1e-12) bars.push_back({label, rest, ""});
  return bars;
}

Bars bars_of(const Attribution& a) {
  Bars out;
  for (const ChangeEffect& change : a.changes) {
    if (!change.share_ps) return {{"all together", seconds(Duration(a.to_ps - a.from_ps)), ""}};
    const bool values = !change.from.empty() || !change.to.empty();
    out.push_back({change.name, seconds(Duration(*change.share_ps)),
                   values ? change.from + " -> " + change.to : ""});
  }
  return out;
}

Bars bars_of_parts(const Comparison& c, std::size_t from, std::size_t to) {
  Bars out;
  for (const StepPart& part : parts_of(c)) {
    const auto a = part_s(c, from, part), b = part_s(c, to, part);
    if (!part.inside && a && b && *a != *b) out.push_back({std::string(part.heading), *b - *a, ""});
  }
  return with_rest(out, *c.comparable_step_s(to) - *c.comparable_step_s(from), "other");
}

Bars bars_of_sides(const Comparison& c, const std::vector<std::size_t>& sides) {
  Bars out;
  for (std::size_t i = 1; i < sides.size(); ++i)
    out.push_back({c.sides[sides[i]].name,
                   *c.comparable_step_s(sides[i]) - *c.comparable_step_s(sides[i - 1]), ""});
  return out;
}

std::string title_of(const Comparison& c) {
  const auto model = c.sides[c.base()].row.text("model");
  return (model ? *model + ", " : "") + "time of a step" +
         (c.same_tokens() ? "" : " for as many tokens");
}

/// From a side over bars to another.
struct Waterfall {
  std::size_t from = 0, to = 0;
  Bars bars;
};

Waterfall waterfall_of(const Comparison& c) {
  std::vector<std::size_t> sides;
  for (std::size_t i = 0; i < c.sides.size(); ++i)
    if (c.sides[i].answered()) sides.push_back(i);
  Waterfall out{sides.front(), sides.back(), {}};
  const auto way = std::ranges::find_if(c.ways, [&](const Difference& one) {
    return one.to == out.to && one.attribution.has_value();
  });
  const bool direct = c.about != About::sides || sides.size() == 2;
  if (direct && way != c.ways.end())
    out.bars = bars_of(*way->attribution);
  else if (sides.size() == 2)
    out.bars = bars_of_parts(c, out.from, out.to);
  else
    out.bars = bars_of_sides(c, sides);
  return out;
}

}  // namespace

Chart difference_chart(const Comparison& c) {
  const auto [from, to, bars] = waterfall_of(c);
  const double from_s = *c.comparable_step_s(from), to_s = *c.comparable_step_s(to);
  TextTable table{
      {"", "what", TextTable::Align::left}, {"time"}, {"", "note", TextTable::Align::left}};
  const auto add = [&](const std::string& name, double time_s, const std::string& note) {
    const std::string text = time_s == 0 ? "0" : to_text(to_duration(std::abs(time_s)));
    table.row({name, {(time_s < 0 ? "-" : "") + text, time_s}, note});
  };
  add(c.sides[from].name, from_s, "");
  for (const WaterfallBar& bar : bars) add(bar.label, bar.change_s, bar.note);
  add(c.sides[to].name, to_s, "");
  return {"difference", "From the first to the last",
          waterfall_picture(c.sides[from].name, from_s, bars, c.sides[to].name, to_s, title_of(c)),
          std::move(table), "Filled bars make the step longer, outlines shorter."};
}

}  // namespace stepcast::sim
