// Comma-separated files with a header line, quotes as in RFC 4180, each row with its line number.
// Knows no column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::sim {

struct CsvRow {
  std::int64_t line = 0;  // where the row begins, counted from 1
  std::vector<std::string> cells;
};

struct CsvFile {
  std::string path;
  std::vector<std::string> header;
  std::vector<CsvRow> rows;
};

/// Throws InputError with file:line: no header, an open quote, text after a closing quote, a row
/// with more or fewer cells than the header, a byte that is no text.
CsvFile parse_csv(std::string path, std::string_view text);

/// Reads a file and parses it.
CsvFile read_csv(const std::string& path);

/// Where each column stands in a header.
using CsvColumns = std::map<std::string, std::size_t, std::less<>>;

/// `column "a"`, or `columns "a", "b"`.
std::string named_columns(std::span<const std::string> names);

/// Throws InputError on columns that are not `known` (with a suggestion) or stand twice.
CsvColumns columns_of(const CsvFile& file, std::span<const std::string> known);

/// A column of a header, looked up once for all rows; the file may lack it.
struct CsvColumn {
  CsvColumn(const CsvColumns& columns, std::string_view called);

  std::string_view name;
  std::optional<std::size_t> place;
};

/// A row with its cells by the names of their columns. Every complaint names file and line.
class CsvLine {
 public:
  CsvLine(const CsvFile& file, const CsvColumns& columns, const CsvRow& row)
      : file_(file), columns_(columns), row_(row) {}

  /// The cell under `column`; "" where the file has no such column.
  const std::string& text(std::string_view column) const;
  const std::string& text(const CsvColumn& column) const;
  /// Likewise, but an empty cell is an error.
  const std::string& stated(std::string_view column) const;
  const std::string& stated(const CsvColumn& column) const;
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const;

 private:
  const CsvFile& file_;
  const CsvColumns& columns_;
  const CsvRow& row_;
};

/// The lines of a file of these columns one after the other, none of them kept: for files that
/// every start of a program reads. Errors as of read_csv and columns_of.
class CsvLines {
 public:
  CsvLines(const std::string& path, std::span<const std::string> known);
  ~CsvLines();

  const CsvColumns& columns() const;
  /// Until the next one is asked for.
  std::optional<CsvLine> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A cell, in quotes where it needs them. One that a spreadsheet would take for a formula (it
/// begins with = + - @ or a tab and is no number) gets an apostrophe before it, which parse_csv
/// takes away.
std::string csv_cell(std::string_view text);

}  // namespace stepcast::sim
