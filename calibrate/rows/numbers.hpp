// The importers' name for strict conversions.
#pragma once

#include "sim/files/numbers.hpp"

namespace stepcast::calibrate {

using sim::number_in;

}  // namespace stepcast::calibrate
