// A measurement file read row by row, each with its line, and the pool of rows that predictions may
// draw on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/files/csv.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::validate {

/// One row; exactly one family of `table` holds it.
struct MeasuredRow {
  std::int64_t line = 0;
  std::string kind;  // as the file names it: "attention_fwd_bwd"
  sim::CalibrationTable table;
};

/// Throws InputError (file:line) on what sim/import/calibration_csv.hpp refuses.
std::vector<MeasuredRow> measured_rows(const sim::CsvFile& file);

/// `known` and those of `rows` that it does not hold already.
sim::CalibrationTable pool_of(sim::CalibrationTable known, const std::vector<MeasuredRow>& rows);

}  // namespace stepcast::validate
