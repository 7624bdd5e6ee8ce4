#include "sim/compare/sides_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/units_text.hpp"

namespace stepcast::sim {

std::string time_text(double time_s) { return time_s == 0 ? "0" : to_text(to_duration(time_s)); }

namespace {

constexpr auto to_left = TextTable::Align::left;

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

using Holds = TextTable::Holds;

TextTable sides_columns(const std::string& change, const std::string& base,
                        const std::vector<RunColumn>& run, const std::vector<StepPart>& parts) {
  TextTable table{
      {"", "label", to_left},        {"", "name", to_left}, filed("measured", Holds::flag),
      filed("refused", Holds::text), {"GPUs", "gpus"},      {"step", "step_time_s"}};
  table.column(change, "to " + base);
  const auto figure = [&](const char* heading, const char* unit, const char* key) {
    table.column(heading, unit, TextTable::Align::right, key);
  };
  figure("tokens/s", "", "tokens_per_s");
  figure("tokens/s", "per GPU", "tokens_per_s_per_gpu");
  figure("MFU", "", "mfu");
  figure("memory", "GiB", "memory_gib_per_gpu");
  for (const char* key : {"tokens", "time_per_token_change"}) table.detail(key);
  for (const RunColumn& column : run) table.column(column.heading, column.unit);
  figure("P(order)", "", "order_probability");
  for (const char* of : {"parts_s/", "differences_s/"})
    for (const StepPart& part : parts) table.detail(of + std::string(part.key));
  return table;
}

std::vector<RunColumn> run_columns_of(const Comparison& c) {
  std::vector<RunColumn> out;
  for (const RunColumn& column : run_columns)
    if (any_has(c, column)) out.push_back(column);
  return out;
}

}  // namespace

TextTable sides_columns() { return sides_columns("change", "base", {}, every_part()); }

TextTable sides_table(const Comparison& c) {
  TextTable table = sides_columns(c.same_tokens() ? "change" : "per token", c.sides[c.base()].label,
                                  run_columns_of(c), parts_of(c));
  for (std::size_t i = 0; i < c.sides.size(); ++i) add_side(table, c, i);
  return table;
}

}  // namespace stepcast::sim
