// From a calibration table back to CSV, in the columns that import.hpp reads.
#pragma once

#include <string>

#include "sim/calibration_table.hpp"

namespace stepcast::calibrate {

/// One header that serves all kinds; importing the text gives the same rows (rates to the last
/// digit or two of a double). A table of stepcast-calibrate run has more columns (pass, width,
/// cache, quality, ...) and kinds (launch, overlap, power): a text for spreadsheets, which import
/// refuses; merge such tables as they are.
std::string export_csv(const sim::CalibrationTable& table);

}  // namespace stepcast::calibrate
