// Tables: aligned text for people, comma-separated values in full for files, and numbers with three
// significant digits. Knows no results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stepcast::sim {

/// Three significant digits, thousands separated: "0.0421", "38.2", "9,180", "1,290,000".
std::string three_digits(double value);

/// A share as "38.2 %".
std::string percent(double share);

/// A count with its thousands separated: "2,048".
std::string grouped(std::int64_t count);

/// What a file holds of a cell: nothing at all, JSON's null, or a value.
struct LeftOut {};
using Exact = std::variant<LeftOut, std::nullptr_t, bool, std::int64_t, double, std::string,
                           std::vector<std::string>>;

/// What people read, and what a file holds and rows are ordered by: 3.14159 behind "3.14". A text
/// stands for itself; "-" is nothing at all.
struct TableCell {
  TableCell() = default;
  TableCell(std::string shown);
  TableCell(const char* shown) : TableCell(std::string(shown)) {}
  TableCell(std::string shown, double value);
  TableCell(std::string shown, std::int64_t value);
  TableCell(std::string shown, std::optional<double> value);

  /// As CSV has it; empty where there is none.
  std::string value() const;
  /// Where the value is one.
  std::optional<double> number() const;

  std::string text = "-";
  Exact exact = LeftOut{};
};

/// What people read need not be what files hold.
TableCell kept(Exact exact, std::string shown = {});
/// Three digits of a number; "-" where there is none.
TableCell rounded(std::optional<double> value);
TableCell counted(std::int64_t count);

/// The cells of a row.
class TableCells : public std::vector<TableCell> {
 public:
  TableCells() = default;
  TableCells(std::initializer_list<TableCell> cells) : std::vector<TableCell>(cells) {}
  TableCells(std::vector<std::string> texts);
};

class TextTable {
 public:
  enum class Align : std::uint8_t { left, right };
  enum class Folded : std::uint8_t { shown, left_out };
  /// What the cells of a column are in files, where they are anything.
  enum class Holds : std::uint8_t { text, number, count, flag, texts };
  /// Who gets a row.
  enum class For : std::uint8_t { all, people, files };

  /// A key makes it a member of the table's rows in JSON, "a/b" one of their member "a".
  struct Column {
    std::string heading, key{};
    Align align = Align::right;
    std::string unit{};
    bool shown = true, in_json = !key.empty();
    Holds holds = align == Align::left ? Holds::text : Holds::number;
    bool minor = false;  // goes first where a terminal has no room

    Column of(Holds what) const;
  };

  TextTable() = default;
  TextTable(std::initializer_list<Column> columns);

  /// A heading may have a second line with the unit. `key` names the column in files and for who
  /// asks for it, with the unit of its values; by default the heading in small letters.
  void column(std::string heading, std::string unit = "", Align align = Align::right,
              std::string key = "");
  /// A column for files, and for who asks for it.
  void detail(std::string key, std::string heading = "", Align align = Align::right,
              Holds holds = Holds::number);
  /// TableCells of details may be left out.
  void row(TableCells cells, For readers = For::all);
  /// A row whose cells after the first ones are one sentence.
  void sentence(TableCells first_cells, std::string text);
  /// Likewise, with all cells for files.
  void sentence(TableCells cells, std::size_t first, std::string text);
  /// Likewise, for files a row of all `cells`. The text may leave it out.
  void folded(TableCells cells, std::size_t first, std::string text);

  /// The column of this key or heading.
  std::optional<std::size_t> find(std::string_view name) const;
  std::vector<std::string> keys() const;
  const std::vector<Column>& columns() const { return columns_; }
  /// The headings as find() compares them.
  std::vector<std::string> headings() const;
  std::size_t num_rows() const { return rows_.size(); }
  /// Whether text() has a row below its headings.
  bool has_text() const;

  /// Numbers by size, before texts; rows without a value come last. Equal ones stay as they are.
  void sort(std::size_t column, bool descending);
  /// The first rows that are no sentences, and all sentences but the folded ones that are left out.
  void keep_first(std::size_t count, Folded folded);
  /// These columns in this order, details as well.
  void select(const std::vector<std::size_t>& columns);

  /// Where text() is wider: minor columns are shown no longer, then others, from the right, but for
  /// the first. Gives the headings of those that went, in their order.
  std::vector<std::string> fit(std::size_t width, Folded folded = Folded::shown);
  /// From here on these columns, by their keys, are minor.
  void set_minor(std::initializer_list<std::string_view> keys);

  /// Lines with two blanks between columns, none at the end.
  std::string text(Folded folded = Folded::shown) const;
  /// A line of keys, then the values of each row, folded ones as well.
  std::string csv() const { return csv_head() + csv_rows(); }
  std::string csv_head() const;
  std::string csv_rows() const;
  void clear_rows() { rows_.clear(); }

  /// What text() prints, cell by cell: for other forms of it than lines.
  struct Shown {
    struct Column {
      std::string heading, unit;
      Align align;
    };
    struct Row {
      std::vector<std::string> cells;       // one per column, or those before the sentence
      std::optional<std::string> sentence;  // over all other columns
    };
    std::vector<Column> columns;
    std::vector<Row> rows;
  };
  Shown shown() const;

  /// Members of each row that is for files: of the columns that are in JSON.
  using Member = std::pair<std::string, Exact>;
  std::vector<std::vector<Member>> members() const;

 private:
  struct Row {
    std::vector<TableCell> cells;  // one per column
    std::size_t before = 0;        // the sentence takes the place of the columns from here
    std::optional<std::string> sentence;
    bool folded = false;
    For readers = For::all;
  };
  void add_sentence(TableCells cells, std::size_t first, std::string text, bool folded);
  std::vector<std::size_t> shown_columns() const;
  /// Of each column as text; what is not shown has none.
  std::vector<std::size_t> widths(Folded folded) const;
  static bool left_out(const Row& row, Folded folded);

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// A column that only files have.
TextTable::Column filed(std::string key, TextTable::Holds holds = TextTable::Holds::number);

}  // namespace stepcast::sim
