#include "sim/files/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/check.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/numbers.hpp"

namespace stepcast::sim {
namespace {

/// "1234567" to "1,234,567"; a sign and decimals stay.
std::string separated(std::string digits) {
  const std::size_t start = digits.starts_with('-') ? 1 : 0;
  std::size_t end = std::min(digits.find('.'), digits.size());
  while (end > start + 3) {
    end -= 3;
    digits.insert(end, ",");
  }
  return digits;
}

/// "16-bit peak" as "16-bit_peak".
std::string key_of(std::string_view heading) {
  std::string out;
  for (const char letter : heading) {
    const bool capital = letter >= 'A' && letter <= 'Z';
    out += letter == ' ' ? '_' : capital ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return out;
}

bool has_value(const TableCell& cell) {
  if (const auto* words = std::get_if<std::string>(&cell.exact)) return !words->empty();
  return !std::holds_alternative<LeftOut>(cell.exact) &&
         !std::holds_alternative<std::nullptr_t>(cell.exact);
}

bool in_order(const TableCell& a, const TableCell& b, bool descending) {
  if (!has_value(a) || !has_value(b)) return has_value(a) && !has_value(b);
  const auto number = a.number(), other = b.number();
  if (number.has_value() != other.has_value()) return number.has_value();
  if (number) return descending ? *other < *number : *number < *other;
  return descending ? b.value() < a.value() : a.value() < b.value();
}

void end_line(std::string& out) {
  out.erase(out.find_last_not_of(' ') + 1);
  out += "\n";
}

}  // namespace

std::string three_digits(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size < 1e-4 || size >= 1e12) return fmt::format("{:.2e}", value);
  const int magnitude = static_cast<int>(std::floor(std::log10(size)));
  const double unit = std::pow(10.0, magnitude - 2);
  const double rounded = std::round(value / unit) * unit;
  // Rounding may carry: 9.996 has two decimals as 10.0 has one.
  const int carried = static_cast<int>(std::floor(std::log10(std::abs(rounded)) + 1e-12));
  return separated(fmt::format("{:.{}f}", rounded, std::max(0, 2 - carried)));
}

std::string percent(double share) {
  // Below a thousandth of a per cent digits say nothing; "0 %" stays what is exactly nothing.
  if (share != 0 && std::abs(share) < 0.5e-5) return share < 0 ? "-0.000 %" : "0.000 %";
  return three_digits(100 * share) + " %";
}

std::string grouped(std::int64_t count) { return separated(std::to_string(count)); }

TableCell::TableCell(std::string shown) : text(std::move(shown)) {
  if (text == "-")
    exact = nullptr;
  else
    exact = text;
}

TableCell::TableCell(std::string shown, double value) : text(std::move(shown)), exact(nullptr) {
  if (std::isfinite(value)) exact = value;
}

TableCell::TableCell(std::string shown, std::int64_t value)
    : text(std::move(shown)), exact(value) {}

TableCell::TableCell(std::string shown, std::optional<double> value)
    : TableCell(std::move(shown), value.value_or(std::numeric_limits<double>::quiet_NaN())) {}

std::string TableCell::value() const {
  if (const auto* words = std::get_if<std::string>(&exact)) return *words;
  if (const auto* count = std::get_if<std::int64_t>(&exact)) return std::to_string(*count);
  if (const auto* real = std::get_if<double>(&exact)) return fmt::format("{}", *real);
  if (const auto* flag = std::get_if<bool>(&exact)) return *flag ? "true" : "false";
  if (const auto* list = std::get_if<std::vector<std::string>>(&exact))
    return fmt::format("{}", fmt::join(*list, "; "));
  return {};
}

std::optional<double> TableCell::number() const {
  if (const auto* words = std::get_if<std::string>(&exact)) return number_in<double>(*words);
  if (const auto* count = std::get_if<std::int64_t>(&exact)) return static_cast<double>(*count);
  if (const auto* real = std::get_if<double>(&exact)) return *real;
  return std::nullopt;
}

TableCell kept(Exact exact, std::string shown) {
  TableCell out;
  out.text = std::move(shown);
  out.exact = std::move(exact);
  return out;
}

TableCell rounded(std::optional<double> value) {
  return value ? TableCell(three_digits(*value), *value) : TableCell("-");
}

TableCell counted(std::int64_t count) { return {grouped(count), count}; }

TableCells::TableCells(std::vector<std::string> texts) {
  for (std::string& text : texts) emplace_back(std::move(text));
}

void TextTable::column(std::string heading, std::string unit, Align align, std::string key) {
  const bool in_json = !key.empty();
  if (key.empty()) key = key_of(heading);
  columns_.push_back({std::move(heading), std::move(key), align, std::move(unit), true, in_json});
}

void TextTable::detail(std::string key, std::string heading, Align align, Holds holds) {
  if (heading.empty()) heading = key;
  columns_.push_back({std::move(heading), std::move(key), align, "", false, true, holds});
}

TextTable::Column TextTable::Column::of(Holds what) const {
  Column out = *this;
  out.holds = what;
  return out;
}

TextTable::Column filed(std::string key, TextTable::Holds holds) {
  TextTable::Column out{.heading = key, .key = std::move(key), .shown = false};
  out.holds = holds;
  return out;
}

TextTable::TextTable(std::initializer_list<Column> columns) : columns_(columns) {
  for (Column& column : columns_)
    if (column.key.empty()) column.key = key_of(column.heading);
}

void TextTable::row(TableCells cells, For readers) {
  for (std::size_t i = cells.size(); i < columns_.size(); ++i)
    expects(!columns_[i].shown, "a row has a cell per column");
  cells.resize(std::max(cells.size(), columns_.size()));
  expects(cells.size() == columns_.size(), "a row has no cell without a column");
  rows_.push_back({std::move(cells), 0, std::nullopt, false, readers});
}

void TextTable::add_sentence(TableCells cells, std::size_t first, std::string text, bool folded) {
  expects(first < columns_.size() && cells.size() <= columns_.size(),
          "a sentence replaces at least one cell");
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), first, std::move(text), folded, For::all});
}

void TextTable::sentence(TableCells first_cells, std::string text) {
  const std::size_t first = first_cells.size();
  add_sentence(std::move(first_cells), first, std::move(text), false);
}

void TextTable::sentence(TableCells cells, std::size_t first, std::string text) {
  add_sentence(std::move(cells), first, std::move(text), false);
}

void TextTable::folded(TableCells cells, std::size_t first, std::string text) {
  add_sentence(std::move(cells), first, std::move(text), true);
}

std::optional<std::size_t> TextTable::find(std::string_view name) const {
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].key == name) return i;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (key_of(columns_[i].heading) == key_of(name)) return i;
  return std::nullopt;
}

std::vector<std::string> TextTable::keys() const {
  std::vector<std::string> out;
  for (const Column& column : columns_) out.push_back(column.key);
  return out;
}

std::vector<std::string> TextTable::headings() const {
  std::vector<std::string> out;
  for (const Column& column : columns_) out.push_back(key_of(column.heading));
  return out;
}

void TextTable::sort(std::size_t column, bool descending) {
  std::ranges::stable_sort(rows_, [&](const Row& a, const Row& b) {
    return in_order(a.cells[column], b.cells[column], descending);
  });
}

void TextTable::keep_first(std::size_t count, Folded folded) {
  std::erase_if(rows_, [&](const Row& row) {
    if (row.sentence) return row.folded && folded == Folded::left_out;
    if (count == 0) return true;
    --count;
    return false;
  });
}

void TextTable::select(const std::vector<std::size_t>& columns) {
  std::vector<Column> kept;
  for (const std::size_t at : columns) kept.push_back(columns_[at]);
  for (Column& column : kept) column.shown = true;
  for (Row& row : rows_) {
    std::vector<TableCell> cells;
    std::size_t before = 0;
    for (const std::size_t at : columns) {
      if (before == cells.size() && at < row.before) ++before;
      cells.push_back(row.cells[at]);
    }
    row = {std::move(cells), before, std::move(row.sentence), row.folded, row.readers};
  }
  columns_ = std::move(kept);
}

std::vector<std::size_t> TextTable::shown_columns() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].shown) out.push_back(i);
  return out;
}

bool TextTable::left_out(const Row& row, Folded folded) {
  return row.readers == For::files || (row.folded && folded == Folded::left_out);
}

std::vector<std::size_t> TextTable::widths(Folded folded) const {
  std::vector<std::size_t> out(columns_.size());
  for (const std::size_t i : shown_columns()) {
    out[i] = std::max(columns_[i].heading.size(), columns_[i].unit.size());
    for (const Row& row : rows_)
      if (!left_out(row, folded) && (!row.sentence || i < row.before))
        out[i] = std::max(out[i], row.cells[i].text.size());
  }
  return out;
}

std::vector<std::string> TextTable::fit(std::size_t width, Folded folded) {
  const std::vector<std::size_t> shown = shown_columns(), wide = widths(folded);
  if (shown.empty()) return {};
  std::size_t whole = 2 * (shown.size() - 1);
  for (const std::size_t i : shown) whole += wide[i];
  for (const bool minor : {true, false})
    for (auto i = shown.rbegin(); i != std::prev(shown.rend()) && whole > width; ++i) {
      Column& column = columns_[*i];
      if (column.minor != minor || !column.shown) continue;
      column.shown = false;
      whole -= wide[*i] + 2;
    }
  std::vector<std::string> out;
  for (const std::size_t i : shown)
    if (!columns_[i].shown) out.push_back(columns_[i].heading);
  return out;
}

void TextTable::set_minor(std::initializer_list<std::string_view> keys) {
  for (Column& column : columns_)
    if (std::ranges::count(keys, column.key) > 0) column.minor = true;
}

std::string TextTable::text(Folded folded) const {
  const std::vector<std::size_t> shown = shown_columns(), widths = this->widths(folded);
  std::string out;
  const auto add = [&](std::size_t i, const std::string& cell) {
    const std::string padding(widths[i] - cell.size(), ' ');
    if (i != shown.front()) out += "  ";
    out += columns_[i].align == Align::left ? cell + padding : padding + cell;
  };
  for (const std::size_t i : shown) add(i, columns_[i].heading);
  end_line(out);
  if (std::ranges::any_of(shown, [&](std::size_t i) { return !columns_[i].unit.empty(); })) {
    for (const std::size_t i : shown) add(i, columns_[i].unit);
    end_line(out);
  }
  for (const Row& row : rows_) {
    if (left_out(row, folded)) continue;
    for (const std::size_t i : shown)
      if (!row.sentence || i < row.before) add(i, row.cells[i].text);
    if (row.sentence) out += (row.before > 0 ? "  " : "") + *row.sentence;
    end_line(out);
  }
  return out;
}

bool TextTable::has_text() const {
  return std::ranges::any_of(rows_, [](const Row& row) { return row.readers != For::files; });
}

std::vector<std::vector<TextTable::Member>> TextTable::members() const {
  std::vector<std::vector<Member>> out;
  for (const Row& row : rows_) {
    if (row.readers == For::people) continue;
    std::vector<Member>& members = out.emplace_back();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].in_json && !std::holds_alternative<LeftOut>(row.cells[i].exact))
        members.emplace_back(columns_[i].key, row.cells[i].exact);
  }
  return out;
}

TextTable::Shown TextTable::shown() const {
  Shown out;
  const std::vector<std::size_t> shown = shown_columns();
  for (const std::size_t i : shown)
    out.columns.push_back({columns_[i].heading, columns_[i].unit, columns_[i].align});
  for (const Row& row : rows_) {
    if (row.readers == For::files) continue;
    Shown::Row& to = out.rows.emplace_back();
    to.sentence = row.sentence;
    for (const std::size_t i : shown)
      if (!row.sentence || i < row.before) to.cells.push_back(row.cells[i].text);
  }
  return out;
}

std::string TextTable::csv_head() const {
  std::string out;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    out += (i > 0 ? "," : "") + csv_cell(columns_[i].key);
  return out + "\n";
}

std::string TextTable::csv_rows() const {
  std::string out;
  for (const Row& row : rows_) {
    if (row.readers == For::people) continue;
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      out += (i > 0 ? "," : "") + csv_cell(row.cells[i].value());
    out += "\n";
  }
  return out;
}

}  // namespace stepcast::sim
