// The error bar of memory: of the distribution that P(fits) is of.
#pragma once

#include <string>

#include "sim/confidence/interval.hpp"
#include "sim/run/memory_odds.hpp"

namespace stepcast::sim {

/// Where ln(needed / forecast) lies in `level` of the cases, as far below as above.
Interval memory_interval(const MemoryOdds& odds, const std::string& kind, double level);

}  // namespace stepcast::sim
