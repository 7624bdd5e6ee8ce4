// Aligned text tables and numbers with three significant digits. Knows no results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::sim {

/// Three significant digits, thousands separated: "0.0421", "38.2", "9,180", "1,290,000".
std::string three_digits(double value);

/// A share as "38.2 %".
std::string percent(double share);

/// A count with its thousands separated: "2,048".
std::string grouped(std::int64_t count);

class TextTable {
 public:
  enum class Align : std::uint8_t { left, right };

  /// A heading may have a second line with the unit.
  void column(std::string heading, std::string unit = "", Align align = Align::right);
  void row(std::vector<std::string> cells);
  /// A row whose cells after the first ones are one sentence.
  void sentence(std::vector<std::string> first_cells, std::string text);

  /// Lines with two blanks between columns, none at the end.
  std::string text() const;

 private:
  struct Column {
    std::string heading, unit;
    Align align;
  };
  struct Row {
    std::vector<std::string> cells;
    std::string tail;
  };
  std::string line(const std::vector<std::string>& cells,
                   const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace stepcast::sim
