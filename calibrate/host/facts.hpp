// What this machine says of itself: processor, clocks, caches, energy counters. Linux' own files.
#pragma once

#include <optional>
#include <string>

#include "engine/units.hpp"

namespace stepcast::calibrate::host {

std::string processor_name();  // "Intel(R) Xeon(R) Processor"
std::string clocks();          // "2600 MHz now", empty where unknown
std::string system_name();     // kernel release
Bytes last_level_cache();      // 32 MiB where it is not told
/// Joules of all processor packages since some moment; none without readable RAPL.
std::optional<double> energy_counter();

}  // namespace stepcast::calibrate::host
