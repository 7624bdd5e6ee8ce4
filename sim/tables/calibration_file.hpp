// Where a calibration table of a scenario lies.
#pragma once

#include <string>

namespace stepcast::sim {

/// "published", "host", or a file. Throws InputError for "host" where this machine is not measured.
std::string calibration_file(const std::string& table);

}  // namespace stepcast::sim
