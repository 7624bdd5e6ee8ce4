// Where the ranks of each pipeline stage spend a step: the account of a step's report, stage by
// stage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/run/session.hpp"

namespace stepcast::sim {

/// Means over the stage's ranks of disjoint wall time, in seconds: they add up to the step.
struct StageTimes {
  double compute_s = 0, exposed_s = 0, bubble_s = 0, wait_s = 0, host_s = 0;
  std::int64_t rank = 0;  // the first of the stage
};

/// "78.6 % of the step computes; the largest loss is exposed communication, 16.5 %"
std::string largest_loss(const StageTimes& times);

/// Of a scenario that was simulated; its noise is left out. Throws what LoggedStep does.
std::vector<StageTimes> stage_times(const Scenario& scenario, Session& session);

}  // namespace stepcast::sim
