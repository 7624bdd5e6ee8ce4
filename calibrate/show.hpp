// What a calibration table holds, for a reader at a terminal: rows per GPU and family, sources, how
// well the rows are known, and on which machines they were measured.
#pragma once

#include <string>

#include "sim/calibration_table.hpp"

namespace stepcast::calibrate {

std::string describe(const sim::CalibrationTable& table);

}  // namespace stepcast::calibrate
