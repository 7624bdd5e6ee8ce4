// The simulated step of a scenario in the quantities of a trace.
#pragma once

#include "sim/run/session.hpp"
#include "validate/trace/breakdown.hpp"

namespace stepcast::validate {

struct SimulatedStep {
  sim::StepReport report;
  StepBreakdown mean;
  sim::Timeline timeline;  // of the same step without noise
};

/// Memory refuses nothing: the run that it stands beside was possible.
SimulatedStep simulate_breakdown(sim::Scenario scenario, sim::Session& session);

}  // namespace stepcast::validate
