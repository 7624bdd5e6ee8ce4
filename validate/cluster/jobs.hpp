// Several jobs of the same step at once on one cluster, each with nodes of its own, so that they
// share nothing but switches and what joins them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/run/simulate.hpp"

namespace stepcast::validate {

/// The nodes of job `job` by rank: jobs take turns, so that every one is on every leaf.
std::vector<std::int64_t> nodes_of_job(std::int64_t job, std::int64_t jobs, std::int64_t ranks);

/// Makes of one bound job so many that start at once, on a network of as many nodes.
void multiply(sim::BoundStep& bound, std::int64_t jobs);

}  // namespace stepcast::validate
