// The quantities whose effect on a step is asked about: bandwidths and latencies of the machine,
// rates of kernels, time of the host. Each is scaled by a factor, in the scenario or, where only
// times follow from it, in the bound step.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "sim/why/logged_step.hpp"

namespace stepcast::sim {

struct Parameter {
  const char* name;
  bool is_rate = true;  // false: a time, of which less is faster
  /// "400 Gbit/s"; empty: the machine has none.
  std::string (*now)(const Scenario&);
  // One of the two: a factor on it in a scenario, or in the system that a step was bound to.
  void (*in_scenario)(Scenario&, double) = nullptr;
  void (*in_system)(const LoggedStep&, engine::System&, double) = nullptr;
};

std::span<const Parameter> parameters();

}  // namespace stepcast::sim
