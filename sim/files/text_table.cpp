#include "sim/files/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"

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

std::string percent(double share) { return three_digits(100 * share) + " %"; }

std::string grouped(std::int64_t count) { return separated(std::to_string(count)); }

void TextTable::column(std::string heading, std::string unit, Align align) {
  columns_.push_back({std::move(heading), std::move(unit), align});
}

void TextTable::row(std::vector<std::string> cells) {
  expects(cells.size() == columns_.size(), "a row has a cell per column");
  rows_.push_back({std::move(cells), ""});
}

void TextTable::sentence(std::vector<std::string> first_cells, std::string text) {
  expects(first_cells.size() < columns_.size(), "a sentence replaces at least one cell");
  rows_.push_back({std::move(first_cells), std::move(text)});
}

std::string TextTable::line(const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths) const {
  std::string out;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += "  ";
    const std::string padding(widths[i] - cells[i].size(), ' ');
    out += columns_[i].align == Align::left ? cells[i] + padding : padding + cells[i];
  }
  return out;
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  std::vector<std::string> headings, units;
  bool any_unit = false;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = std::max(columns_[i].heading.size(), columns_[i].unit.size());
    for (const Row& row : rows_)
      if (i < row.cells.size()) width = std::max(width, row.cells[i].size());
    widths.push_back(width);
    headings.push_back(columns_[i].heading);
    units.push_back(columns_[i].unit);
    any_unit = any_unit || !columns_[i].unit.empty();
  }
  std::vector<std::string> lines{line(headings, widths)};
  if (any_unit) lines.push_back(line(units, widths));
  for (const Row& row : rows_)
    lines.push_back(line(row.cells, widths) + (row.tail.empty() ? "" : "  " + row.tail));
  std::string out;
  for (std::string& one : lines) {
    one.erase(one.find_last_not_of(' ') + 1);
    out += one + "\n";
  }
  return out;
}

}  // namespace stepcast::sim
