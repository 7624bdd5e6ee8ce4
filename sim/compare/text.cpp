// A comparison as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/units_text.hpp"
#include "sim/compare/comparison.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::sim {
namespace {

constexpr auto left = TextTable::Align::left;

std::string time_text(double time_s) { return time_s == 0 ? "0" : to_text(to_duration(time_s)); }

/// "-310 ms"
std::string difference_text(double difference_s) {
  if (difference_s == 0) return "0";
  return (difference_s < 0 ? "-" : "+") + time_text(std::abs(difference_s));
}

/// "-36.1 %"
std::string change_text(double ratio) {
  constexpr double least = 1e-5;
  if (ratio == 0) return "0";
  if (std::abs(ratio) < least) return "< " + percent(least);
  return (ratio < 0 ? "-" : "+") + percent(std::abs(ratio));
}

std::string order_text(double probability) {
  return probability > 0.995 ? "> 0.99" : fmt::format("{:.2f}", probability);
}

double seconds_of(std::int64_t ps) { return seconds(Duration(ps)); }

std::string told(const Side& side, std::string_view key, std::string (*text)(double)) {
  const auto value = side.row.number(key);
  return value ? text(*value) : "-";
}

/// As much of a reason as a line takes; JSON has all of it.
std::string shortened(const std::string& reason) {
  constexpr std::size_t most = 80;
  if (reason.size() <= most) return reason;
  const std::size_t clause = reason.find_last_of(",:", most);
  const bool short_clause = clause == std::string::npos || clause < most / 2;
  return reason.substr(0, short_clause ? reason.rfind(' ', most) : clause) + " ...";
}

/// What a whole run comes to, where sides say it; with `to`, from `key` to there.
struct RunColumn {
  const char *heading, *unit, *key, *to = nullptr;
};
constexpr RunColumn run_columns[] = {{"days", "", "run.days"},
                                     {"between", "", "run.days_low", "run.days_high"},
                                     {"energy", "MWh", "run.energy_mwh"},
                                     {"CO2e", "t", "run.co2_t"},
                                     {"cost", "USD", "run.usd"},
                                     {"between", "USD", "run.usd_low", "run.usd_high"},
                                     {"USD per", "M tokens", "run.usd_per_million_tokens"},
                                     {"J/token", "at meter", "run.joules_per_token"}};

std::string run_cell(const Side& side, const RunColumn& column) {
  const std::string out = told(side, column.key, three_digits);
  return column.to == nullptr || out == "-" ? out
                                            : out + " to " + told(side, column.to, three_digits);
}

bool any_has(const Comparison& c, const RunColumn& column) {
  return std::ranges::any_of(
      c.sides, [&](const Side& side) { return side.row.number(column.key).has_value(); });
}

void add_side(TextTable& table, const Comparison& c, std::size_t i) {
  const Side& side = c.sides[i];
  if (const auto reason = side.row.unanswered())
    return table.sentence({side.label, side.name}, shortened(*reason));
  const double base = *c.comparable_step_s(c.base()), own = *c.comparable_step_s(i);
  const auto sure = c.order_right(i);
  const auto gpus = side.row.number("gpus");
  TableCells cells{side.label,
                   side.name + (side.measured ? " (measured)" : ""),
                   gpus ? grouped(std::llround(*gpus)) : "-",
                   time_text(*side.step_s()),
                   i == c.base() ? "" : change_text(own / base - 1),
                   told(side, "tokens_per_s", three_digits),
                   told(side, "tokens_per_s_per_gpu", three_digits),
                   told(side, "mfu", percent),
                   told(side, "memory_gib_per_gpu", three_digits)};
  for (const RunColumn& column : run_columns)
    if (any_has(c, column)) cells.push_back(run_cell(side, column));
  cells.push_back(sure ? order_text(*sure) : "");
  table.row(std::move(cells));
}

/// A part with what stands inside it.
struct PartRows {
  std::vector<StepPart> parts;
  double largest_s = 0;  // difference to the base
};

/// The largest difference first.
std::vector<PartRows> sorted_parts(const Comparison& c) {
  std::vector<PartRows> out;
  for (const StepPart& part : parts_of(c)) {
    if (part.inside) {
      out.back().parts.push_back(part);
      continue;
    }
    out.push_back({{part}, 0});
    const auto base = part_s(c, c.base(), part);
    for (std::size_t i = 0; i < c.sides.size() && base; ++i)
      if (const auto own = part_s(c, i, part))
        out.back().largest_s = std::max(out.back().largest_s, std::abs(*own - *base));
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &PartRows::largest_s);
  return out;
}

std::vector<std::size_t> answered_in(const Comparison& c) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < c.sides.size(); ++i)
    if (c.sides[i].answered()) out.push_back(i);
  return out;
}

/// Beside more sides than these only the differences have room.
constexpr std::size_t most_with_times = 4;

/// The base's cell and those of all others, or of `differences` alone.
template <class Value, class Cells>
std::vector<std::string> part_cells(const Comparison& c, Value value, Cells cells) {
  const auto base = value(c.base());
  const auto answered = answered_in(c);
  for (const std::size_t i : answered)
    if (i == c.base() || answered.size() <= most_with_times)
      cells.push_back(value(i) ? time_text(*value(i)) : "-");
  for (const std::size_t i : answered)
    if (i != c.base()) cells.push_back(value(i) && base ? difference_text(*value(i) - *base) : "-");
  return cells;
}

bool nowhere(const Comparison& c, const StepPart& part) {
  return std::ranges::all_of(answered_in(c),
                             [&](std::size_t i) { return part_s(c, i, part) == 0.0; });
}

TextTable parts_table(const Comparison& c) {
  const auto answered = answered_in(c);
  const std::string& base = c.sides[c.base()].label;
  TextTable table;
  table.column("mean over ranks", "", left);
  for (const std::size_t i : answered)
    if (i == c.base() || answered.size() <= most_with_times) table.column(c.sides[i].label);
  for (const std::size_t i : answered)
    if (i != c.base()) table.column(c.sides[i].label + " - " + base);
  return table;
}

std::string parts_text(const Comparison& c) {
  TextTable table = parts_table(c);
  std::string zero;
  const auto add = [&](std::string_view heading, auto value) {
    table.row(part_cells(c, value, std::vector{std::string(heading)}));
  };
  for (const PartRows& rows : sorted_parts(c))
    for (const StepPart& part : rows.parts) {
      if (nowhere(c, part) && part.key.ends_with(".expert"))
        continue;  // dense models have none to speak of
      if (nowhere(c, part))
        zero += (zero.empty() ? "" : ", ") +
                std::string(part.heading.substr(part.heading.find_first_not_of(' ')));
      else
        add(part.heading, [&](std::size_t i) { return part_s(c, i, part); });
    }
  add("step", [&](std::size_t i) { return c.comparable_step_s(i); });
  return "\n" + table.text() + (zero.empty() ? "" : "none in any: " + zero + "\n");
}

std::string alone_text(const ChangeEffect& effect) {
  if (!effect.alone_ps) return "not alone";
  const bool moves = *effect.alone_ps != 0;
  const std::string difference = difference_text(seconds_of(*effect.alone_ps));
  if (!effect.fits_alone) return "does not fit" + (moves ? ": " + difference : "");
  return moves ? difference : "no effect";
}

std::string share_text(const ChangeEffect& effect) {
  if (!effect.share_ps) return "-";
  std::string out = difference_text(seconds_of(*effect.share_ps));
  if (effect.error_ps > 0) out += " +- " + time_text(effect.error_ps * 1e-12);
  return out;
}

/// How the shares were found, and what they are.
std::string method_text(const Attribution& a) {
  if (a.changes.size() == 1) return {};
  if (a.orders == 0)
    return fmt::format("no order of making them one by one is possible ({} tried): no shares\n",
                       a.asked);
  std::string out = fmt::format(
      "share: mean over {} {}orders of making them one by one (Shapley), {} runs; to the "
      "picosecond\n",
      grouped(static_cast<std::int64_t>(a.orders)), a.exact ? "" : "random ", a.runs);
  if (a.orders < a.asked)
    out += fmt::format("{} of {} orders pass a point that is impossible, and are left out\n",
                       a.asked - a.orders, a.asked);
  if (a.unfit > 0)
    out +=
        fmt::format("{} of the points do not fit in memory and are timed all the same\n", a.unfit);
  return out;
}

std::string interaction_text(const Attribution& a, About about) {
  if (a.changes.size() == 1) return {};
  const auto interaction = a.interaction_ps();
  if (!interaction) return {};
  return fmt::format("all together {}, the sum of each alone {}: {} {}\n",
                     difference_text(seconds_of(a.to_ps - a.from_ps)),
                     difference_text(seconds_of(a.to_ps - a.from_ps - *interaction)),
                     about == About::ablations ? "their overlap is" : "their interaction is",
                     difference_text(seconds_of(*interaction)));
}

std::vector<const ChangeEffect*> by_share(const Attribution& a) {
  std::vector<const ChangeEffect*> out;
  for (const ChangeEffect& change : a.changes) out.push_back(&change);
  std::ranges::stable_sort(out, std::ranges::greater{}, [](const ChangeEffect* change) {
    return std::abs(change->share_ps.value_or(change->alone_ps.value_or(0)));
  });
  return out;
}

std::string reasons_text(const Attribution& a) {
  std::string out;
  for (const ChangeEffect& change : a.changes)
    if (!change.alone_ps)
      out += fmt::format("{} alone is impossible: {}\n", change.name, change.impossible);
  return out;
}

std::string attribution_text(const Attribution& a, const std::string& heading, About about) {
  const bool named = about != About::sides;
  TextTable table;
  table.column(heading, "", left);
  if (!named) table.column("from", "", left);
  if (!named) table.column("to", "", left);
  table.column("alone");
  table.column("share");
  for (const ChangeEffect* change : by_share(a)) {
    std::vector<std::string> cells{change->name};
    if (!named)
      cells.insert(cells.end(), {change->from.empty() ? "-" : change->from,
                                 change->to.empty() ? "-" : change->to});
    cells.insert(cells.end(), {alone_text(*change), share_text(*change)});
    table.row(std::move(cells));
  }
  return table.text() + method_text(a) + interaction_text(a, about) + reasons_text(a);
}

std::string heading_of(const Comparison& c, const Difference& way) {
  if (c.about == About::what_ifs) return "what if";
  if (c.about == About::ablations) return "without";
  return fmt::format("changed from {} to {}", c.sides[way.from].label, c.sides[way.to].label);
}

std::string way_text(const Comparison& c, const Difference& way) {
  const std::string heading = heading_of(c, way);
  const bool several = c.about == About::sides && c.sides.size() > 2;
  if (several && way.keys.size() == 1 && way.why_not.empty())
    return fmt::format("{}: {}\n", heading, way.keys.front());
  if (way.attribution) return attribution_text(*way.attribution, heading, c.about);
  std::string out = heading + "\n";
  for (const std::string& key : way.keys) out += "  " + key + "\n";
  if (way.keys.empty() && c.about == About::sides) out += "  no key\n";
  return way.why_not.empty() ? out : out + "no shares: " + way.why_not + "\n";
}

}  // namespace

TextTable sides_table(const Comparison& c) {
  TextTable table;
  table.column("", "", left);
  table.column("", "", left);
  table.column("GPUs");
  table.column("step");
  table.column(c.same_tokens() ? "change" : "per token", "to " + c.sides[c.base()].label);
  table.column("tokens/s");
  table.column("tokens/s", "per GPU");
  table.column("MFU");
  table.column("memory", "GiB");
  for (const RunColumn& column : run_columns)
    if (any_has(c, column)) table.column(column.heading, column.unit);
  table.column("P(order)");
  for (std::size_t i = 0; i < c.sides.size(); ++i) add_side(table, c, i);
  return table;
}

std::string comparison_text(const Comparison& c) {
  std::string out = sides_table(c).text();
  if (answered_in(c).size() > 1) out += parts_text(c);
  if (!c.ways.empty()) out += "\n";
  for (const Difference& way : c.ways) out += way_text(c, way);
  const auto notes = notes_on(c);
  if (!notes.empty()) out += "\n";
  for (const std::string& note : notes) out += note + "\n";
  return out;
}

}  // namespace stepcast::sim
