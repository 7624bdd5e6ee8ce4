// What a sweep of one quantity shows: step, power and what a joule gives as curves over it.
#pragma once

#include <optional>

#include "sim/study/results.hpp"
#include "sim/told/told.hpp"

namespace stepcast::sim {

/// Of one swept key with numbers of one unit and answers at three of them or more.
std::optional<Chart> curves_of(const Results& results);

}  // namespace stepcast::sim
