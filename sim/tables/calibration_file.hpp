// Where a calibration table of a scenario lies, and how a part of one is read.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/tables/calibration_table.hpp"

namespace stepcast::sim {

/// "published", "host", or a file. Throws InputError for "host" where this machine is not measured.
std::string calibration_file(const std::string& table);

/// Of "published" the rows of the GPUs that `wanted` names, and all of families whose times of one
/// GPU are taken from the rows of others as well (attention).
using WantedGpu = std::function<bool(std::string_view gpu)>;
CalibrationTable read_published(const WantedGpu& wanted);

}  // namespace stepcast::sim
