// A comparison, told once: what differs, and what it comes from.
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
std::optional<double> seconds_of(const std::optional<std::int64_t>& ps) {
  return ps ? std::optional(seconds_of(*ps)) : std::nullopt;
}

TableCell known(const Side& side, std::string_view key, std::string (*text)(double)) {
  const auto value = side.row.number(key);
  return value ? TableCell(text(*value), *value) : TableCell("-");
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
  const std::string out = known(side, column.key, three_digits).text;
  return column.to == nullptr || out == "-"
             ? out
             : out + " to " + known(side, column.to, three_digits).text;
}

bool any_has(const Comparison& c, const RunColumn& column) {
  return std::ranges::any_of(
      c.sides, [&](const Side& side) { return side.row.number(column.key).has_value(); });
}

/// Label, name, whether it was measured, why it has no answer.
constexpr std::size_t cells_before_figures = 4;

/// Each part of the step, and how much longer it is than the base's.
void add_part_cells(TableCells& cells, const Comparison& c, std::size_t i) {
  for (const StepPart& part : parts_of(c)) cells.push_back({"", part_s(c, i, part)});
  for (const StepPart& part : parts_of(c)) {
    const auto value = part_s(c, i, part), base = part_s(c, c.base(), part);
    cells.push_back(value && base ? kept(*value - *base) : TableCell());
  }
}

void add_side(TextTable& table, const Comparison& c, std::size_t i) {
  const Side& side = c.sides[i];
  TableCells cells{side.label, kept(side.name, side.name + (side.measured ? " (measured)" : "")),
                   kept(side.measured)};
  if (const auto reason = side.row.unanswered()) {
    cells.push_back(kept(*reason));
    return table.sentence(std::move(cells), cells_before_figures, shortened(*reason));
  }
  const double change = *c.comparable_step_s(i) / *c.comparable_step_s(c.base()) - 1;
  const auto sure = c.order_right(i);
  const auto in_thousands = [](double count) { return grouped(std::llround(count)); };
  for (TableCell cell :
       {TableCell(), known(side, "gpus", in_thousands), known(side, "step_time_s", time_text),
        TableCell(i == c.base() ? "" : change_text(change)),
        known(side, "tokens_per_s", three_digits),
        known(side, "tokens_per_s_per_gpu", three_digits), known(side, "mfu", percent),
        known(side, "memory_gib_per_gpu", three_digits), TableCell("", side.tokens()),
        kept(change)})
    cells.push_back(std::move(cell));
  for (const RunColumn& column : run_columns)
    if (any_has(c, column)) cells.push_back(run_cell(side, column));
  cells.push_back({sure ? order_text(*sure) : "", sure});
  add_part_cells(cells, c, i);
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

void tell_parts(ToldSection& out, const Comparison& c) {
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
  out.table("", std::move(table));
  if (!zero.empty()) out.say("none in any: " + zero);
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
void say_method(ToldSection& out, const Attribution& a) {
  if (a.orders == 0)
    return out.say(fmt::format(
        "no order of making them one by one is possible ({} tried): no shares", a.asked));
  out.say(
      fmt::format("share: mean over {} {}orders of making them one by one (Shapley), {} runs; to "
                  "the picosecond",
                  grouped(static_cast<std::int64_t>(a.orders)), a.exact ? "" : "random ", a.runs));
  if (a.orders < a.asked)
    out.say(fmt::format("{} of {} orders pass a point that is impossible, and are left out",
                        a.asked - a.orders, a.asked));
  if (a.unfit > 0)
    out.say(
        fmt::format("{} of the points do not fit in memory and are timed all the same", a.unfit));
}

void say_interaction(ToldSection& out, const Attribution& a, About about) {
  if (const auto interaction = a.interaction_ps())
    out.say(fmt::format("all together {}, the sum of each alone {}: {} {}",
                        difference_text(seconds_of(a.to_ps - a.from_ps)),
                        difference_text(seconds_of(a.to_ps - a.from_ps - *interaction)),
                        about == About::ablations ? "their overlap is" : "their interaction is",
                        difference_text(seconds_of(*interaction))));
}

/// "-" for people, nothing for programs.
TableCell unless_empty(const std::string& value) {
  return value.empty() ? TableCell() : TableCell(value);
}

/// Programs get the changes as they were asked for, people the largest share first.
TextTable changes_table(const Attribution& a, const std::string& heading, bool with_values,
                        bool in_text) {
  TextTable table{{heading, "change", left}};
  for (const char* key : {"from", "to"})
    if (with_values)
      table.column(key, "", left, key);
    else
      table.detail(key);
  table.column("alone", "", TextTable::Align::right, "alone_s");
  for (const char* key : {"fits_alone", "impossible_alone"}) table.detail(key);
  table.column("share", "", TextTable::Align::right, "share_s");
  for (const char* key : {"share_standard_error_s", "without_effect"}) table.detail(key);
  const auto add = [&](const ChangeEffect& e, TextTable::For readers) {
    table.row({e.name,
               unless_empty(e.from),
               unless_empty(e.to),
               {alone_text(e), seconds_of(e.alone_ps)},
               e.fits_alone ? TableCell() : kept(false),
               unless_empty(e.impossible),
               {share_text(e), seconds_of(e.share_ps)},
               e.error_ps > 0 ? kept(e.error_ps * 1e-12) : TableCell(),
               kept(e.without_effect())},
              readers);
  };
  for (const ChangeEffect& effect : a.changes) add(effect, TextTable::For::files);
  if (!in_text) return table;
  std::vector<const ChangeEffect*> sorted;
  for (const ChangeEffect& effect : a.changes) sorted.push_back(&effect);
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [](const ChangeEffect* change) {
    return std::abs(change->share_ps.value_or(change->alone_ps.value_or(0)));
  });
  for (const ChangeEffect* effect : sorted) add(*effect, TextTable::For::people);
  return table;
}

void tell_attribution(ToldSection& out, const Attribution& a, const std::string& heading,
                      About about, bool in_text) {
  out.keep("from_s", seconds_of(a.from_ps));
  out.keep("to_s", seconds_of(a.to_ps));
  out.table("changes", changes_table(a, heading, about == About::sides, in_text), false);
  if (in_text && a.changes.size() > 1) {
    say_method(out, a);
    say_interaction(out, a, about);
  }
  for (const ChangeEffect& change : a.changes)
    if (in_text && !change.alone_ps)
      out.say(fmt::format("{} alone is impossible: {}", change.name, change.impossible));
  out.keep("interaction_s", seconds_of(a.interaction_ps()));
  out.keep("runs", a.runs);
  out.keep("runs_beyond_memory", a.unfit);
  out.keep("orders", a.orders);
  out.keep("orders_asked", a.asked);
  out.keep("every_order", a.exact);
}

std::string heading_of(const Comparison& c, const Difference& way) {
  if (c.about == About::what_ifs) return "what if";
  if (c.about == About::ablations) return "without";
  return fmt::format("changed from {} to {}", c.sides[way.from].label, c.sides[way.to].label);
}

ToldSection told_of(const Comparison& c, const Difference& way) {
  ToldSection out;
  out.keep("from", c.sides[way.from].label);
  out.keep("to", c.sides[way.to].label);
  if (!way.keys.empty()) out.keep("keys", way.keys);
  if (!way.why_not.empty()) out.keep("no_shares", way.why_not);
  const std::string heading = heading_of(c, way);
  const bool sides = c.about == About::sides;
  const bool one_key = sides && c.sides.size() > 2 && way.keys.size() == 1 && way.why_not.empty();
  if (one_key) out.say(heading + ": " + way.keys.front());
  if (way.attribution) tell_attribution(out, *way.attribution, heading, c.about, !one_key);
  if (one_key || way.attribution) return out;
  out.say(heading);
  for (const std::string& key : way.keys) out.say("  " + key);
  if (way.keys.empty() && sides) out.say("  no key");
  if (!way.why_not.empty()) out.say("no shares: " + way.why_not);
  return out;
}

}  // namespace

TextTable sides_table(const Comparison& c) {
  TextTable table{{"", "label", left}, {"", "name", left}, filed("measured"),
                  filed("refused"),    {"GPUs", "gpus"},   {"step", "step_time_s"}};
  table.column(c.same_tokens() ? "change" : "per token", "to " + c.sides[c.base()].label);
  const auto figure = [&](const char* heading, const char* unit, const char* key) {
    table.column(heading, unit, TextTable::Align::right, key);
  };
  figure("tokens/s", "", "tokens_per_s");
  figure("tokens/s", "per GPU", "tokens_per_s_per_gpu");
  figure("MFU", "", "mfu");
  figure("memory", "GiB", "memory_gib_per_gpu");
  for (const char* key : {"tokens", "time_per_token_change"}) table.detail(key);
  for (const RunColumn& column : run_columns)
    if (any_has(c, column)) table.column(column.heading, column.unit);
  figure("P(order)", "", "order_probability");
  for (const char* of : {"parts_s/", "differences_s/"})
    for (const StepPart& part : parts_of(c)) table.detail(of + std::string(part.key));
  for (std::size_t i = 0; i < c.sides.size(); ++i) add_side(table, c, i);
  return table;
}

ToldSection told_of(const Comparison& c) {
  ToldSection out;
  out.keep("base", c.sides[c.base()].label);
  out.keep("same_tokens", c.same_tokens());
  out.table("sides", sides_table(c));
  if (answered_in(c).size() > 1) tell_parts(out, c);
  if (!c.ways.empty()) out.say();
  std::vector<ToldSection> ways;
  for (const Difference& way : c.ways) ways.push_back(told_of(c, way));
  out.blocks.emplace_back(ToldEach{"ways", std::move(ways)});
  const auto notes = notes_on(c);
  if (!notes.empty()) out.say();
  for (const std::string& note : notes) out.say(note);
  out.keep("notes", notes);
  return out;
}

}  // namespace stepcast::sim
