// What a calibration table holds, for a reader at a terminal: rows per GPU and family, sources, how
// well the rows are known, on which machines they were measured, and small families row by row.
#pragma once

#include <string>

#include "sim/tables/calibration_table.hpp"

namespace stepcast::sim {

std::string describe(const CalibrationTable& table);

}  // namespace stepcast::sim
