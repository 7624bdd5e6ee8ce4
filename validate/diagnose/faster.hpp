// What else would make the run faster: other settings and the best degrees of the same model on the
// same GPUs. No part of the gap, which is measured beside the plan as it is.
#pragma once

#include <string>
#include <vector>

#include "sim/run/session.hpp"

namespace stepcast::validate {

/// Another plan or setting of the same run, simulated.
struct Faster {
  std::string what;  // "no recompute"
  std::string how;   // "plan.recompute = none"
  double step = 0;   // s
};

/// Those that fit and take at least 3 % less than `expected` seconds, fastest first.
std::vector<Faster> faster_ways(const sim::Scenario& scenario, double expected,
                                sim::Session& session);

}  // namespace stepcast::validate
