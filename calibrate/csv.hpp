// Comma-separated files with a header line, quotes as in RFC 4180, each row with its line number.
// Knows no column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::calibrate {

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

/// A cell, in quotes where it needs them.
std::string csv_cell(std::string_view text);

}  // namespace stepcast::calibrate
