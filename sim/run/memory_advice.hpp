// What would bring a plan into memory: its nearest neighbours, each with the memory that it needs;
// and what a user should know about the memory of a plan that fits.
#pragma once

#include <string>
#include <vector>

#include "sim/run/memory_odds.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// "; it fits with micro-batch 1 (61.0 GiB, 98 %), recompute full (58.0 GiB, 99 %)": changes of one
/// knob that make the plan likely to fit, the cheapest in time first, each with what it needs and
/// how likely that fits; where none does, what helps most, and whether a few changes together would
/// do. Empty: nothing helps.
std::string memory_advice(const Scenario& scenario, const MemoryOdds& odds = {});

/// A micro-batch above 1 that nobody asked for; gradients that wait whole because the scenario says
/// so although its framework would reduce them at once.
std::vector<std::string> memory_warnings(const Scenario& scenario);

}  // namespace stepcast::sim
