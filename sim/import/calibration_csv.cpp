#include "sim/import/calibration_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/files/numbers.hpp"
#include "sim/files/suggest.hpp"
#include "sim/import/published_csv.hpp"

namespace stepcast::sim {
namespace {

std::string heading_of(const Column& column) {
  const std::string_view unit = column.unit;
  return unit == "text" || unit == "1" ? column.name : fmt::format("{} [{}]", column.name, unit);
}

/// The header for the families that `wanted` takes.
template <class Wanted>
std::vector<std::string> headings(Wanted&& wanted) {
  std::vector<std::string> all{"gpu", "family"};
  for (const Family& family : families())
    if (wanted(family))
      for (const Column& column : family.columns)
        if (const std::string heading = heading_of(column);
            std::find(all.begin(), all.end(), heading) == all.end())
          all.push_back(heading);
  for (const SourceColumn& column : source_columns) all.emplace_back(column.name);
  return all;
}

using Cells = std::map<std::string, std::string>;

Cells cells_of(const Family& family, const CalibrationTable& table, std::size_t row) {
  Cells cells{{"family", family.name}};
  for (const Column& column : family.columns)
    cells[heading_of(column)] = exact_text(column.get(table, row));
  RowSource source = *family.source(table, row);
  for (const SourceColumn& column : source_columns) cells[column.name] = column.in(source);
  return cells;
}

const Family& family_of(const CsvLine& line) {
  const std::string& name = line.stated("family");
  std::vector<std::string> known;
  for (const Family& family : families()) {
    if (name == family.name) return family;
    known.emplace_back(family.name);
  }
  line.fail("unknown family \"" + name + "\"", suggestion(name, known));
}

bool is_of_every_family(std::string_view heading) {
  return heading == "family" ||
         std::any_of(source_columns.begin(), source_columns.end(),
                     [&](const SourceColumn& column) { return heading == column.name; });
}

void import_row(const CsvLine& line, const std::vector<std::string>& header,
                CalibrationTable& table) {
  const Family& family = family_of(line);
  const std::size_t row = family.size(table);
  family.resize(table, row + 1);
  for (const std::string& heading : header) {
    const std::string& text = line.text(heading);
    if (text.empty() || is_of_every_family(heading)) continue;
    const auto column = std::find_if(family.columns.begin(), family.columns.end(),
                                     [&](const Column& c) { return heading_of(c) == heading; });
    if (column == family.columns.end())
      line.fail(std::string("a row of ") + family.name + " has no column \"" + heading + "\"");
    column->set(table, row, parse_cell(line, *column, text));
  }
  finish_row(line, family, table, "reference");
}

}  // namespace

std::string export_csv(const CalibrationTable& table) {
  const std::vector<std::string> header =
      headings([&](const Family& family) { return family.size(table) > 0; });
  std::string text = fmt::format("{}\n", fmt::join(header, ","));
  for (const Family& family : families())
    for (std::size_t row = 0; row < family.size(table); ++row) {
      const Cells cells = cells_of(family, table, row);
      for (const std::string& heading : header) {
        const auto cell = cells.find(heading);
        if (cell != cells.end()) text += csv_cell(cell->second);
        text += ',';
      }
      text.back() = '\n';
    }
  return text;
}

CalibrationTable import_csv(const CsvFile& file) {
  const auto& header = file.header;
  if (std::find(header.begin(), header.end(), "family") == header.end())
    return import_published_csv(file);
  const CsvColumns columns = columns_of(file, headings([](const Family&) { return true; }));
  CalibrationTable table;
  for (const CsvRow& row : file.rows) import_row(CsvLine(file, columns, row), header, table);
  return table;
}

Cell parse_cell(const CsvLine& line, const Column& column, const std::string& text) {
  const auto fail = [&](const char* what) {
    line.fail(fmt::format("{} \"{}\" {}", column.name, text, what));
  };
  if (column.stored == Stored::text) return text;
  if (column.stored == Stored::real) {
    const auto number = number_in<double>(text);
    if (!number) fail("is not a number");
    return *number;
  }
  const auto count = number_in<std::int64_t>(text);
  if (column.stored == Stored::flag && text != "0" && text != "1") fail("is not 0 or 1");
  if (!count || (*count > most_counted && column.unit != std::string_view("ps")))
    fail("is not a whole number");
  return *count;
}

void finish_row(const CsvLine& line, const Family& family, CalibrationTable& table,
                std::string_view reference) {
  const std::size_t row = family.size(table) - 1;
  line.stated("gpu");
  if (const std::string fault = fault_of(family, table, row); !fault.empty()) line.fail(fault);
  RowSource source;
  for (const SourceColumn& column : source_columns) column.in(source) = line.text(column.name);
  source.source = line.stated("source");
  source.reference = line.stated(reference);
  source.confidence = line.stated("confidence");
  if (source.confidence != "high" && source.confidence != "medium" && source.confidence != "low")
    line.fail("confidence \"" + source.confidence + "\" is none of high, medium, low");
  family.set_source(table, row, source);
}

}  // namespace stepcast::sim
