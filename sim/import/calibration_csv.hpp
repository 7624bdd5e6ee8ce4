// Calibration tables as CSV: one line per row of any family, in the columns of
// calibration_columns.hpp; the CSV of publications (published_csv.hpp) is read as well. Knows no
// HDF5.
#pragma once

#include <string>
#include <string_view>

#include "sim/files/csv.hpp"
#include "sim/tables/calibration_columns.hpp"

namespace stepcast::sim {

/// One header for all families of the table: gpu, family, their columns ("rate [FLOP/s]"), those of
/// the source. Importing the text gives the same rows.
std::string export_csv(const CalibrationTable& table);

/// Rows as export_csv() writes them, or else as publications are kept: the column "family" tells.
/// Throws InputError with file:line on what is not understood.
CalibrationTable import_csv(const CsvFile& file);

/// Counts and sizes in CSV are multiplied with each other later: 2^40 of them leaves room.
inline constexpr std::int64_t most_counted = std::int64_t{1} << 40;

/// The text of a CSV cell as a cell of `column`; InputError where it is none.
Cell parse_cell(const CsvLine& line, const Column& column, const std::string& text);

/// Checks the newest row of a family and gives it the source that the line states, its reference
/// under `reference`. InputError on what no measurement can be.
void finish_row(const CsvLine& line, const Family& family, CalibrationTable& table,
                std::string_view reference);

}  // namespace stepcast::sim
