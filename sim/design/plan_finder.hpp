// The fastest plan of a machine, by a search over the simulator.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "sim/design/design.hpp"
#include "sim/run/session.hpp"

namespace stepcast::sim {

struct FinderOptions {
  unsigned threads = 1;
  bool across_nodes = false;  // also tensor degrees above the GPUs of a node
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  std::function<StepReport(const Scenario&)> step{};  // instead of the session's
  std::function<bool(const Scenario&)> knows{};       // likewise: without a simulation
  bool only_known = false;                            // other plans are left open
};

/// Of the machines of a goal; all are borrowed.
PlanFinder plan_finder(const DesignGoal&, const Machines&, Session&, const FinderOptions&,
                       const std::atomic<bool>& stop);

/// Of the plans that the goal's space has.
PeakRules peak_rules(const DesignGoal&, const Machines&);

}  // namespace stepcast::sim
