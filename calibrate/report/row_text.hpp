// What a row of a calibration table measured, in a few words, and its figure as a time: for every
// family alike, by its columns.
#pragma once

#include <cstddef>
#include <string>

#include "sim/tables/calibration_columns.hpp"

namespace stepcast::calibrate {

/// A row's figure as a time, up to a factor that rows of one key share; 0: none.
double row_time(const sim::Family& family, const sim::CalibrationTable& table, std::size_t row);

/// What a row measured: its key without the GPU.
std::string row_name(const sim::Family& family, const sim::CalibrationTable& table,
                     std::size_t row);

/// Its figure and, where it has one, what that is at `times` its time: "652 TFLOP/s".
std::string row_figure(const sim::Family& family, const sim::CalibrationTable& table,
                       std::size_t row, double times = 1.0);

}  // namespace stepcast::calibrate
