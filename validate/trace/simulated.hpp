// The simulated step of a scenario in the quantities of a trace.
#pragma once

#include "sim/run/session.hpp"
#include "validate/trace/breakdown.hpp"

namespace stepcast::validate {

struct SimulatedStep {
  sim::StepReport report;
  StepBreakdown mean;
};

/// Memory refuses nothing: the run that it stands beside was possible. Kernels and
/// collectives cost more than the step and are left out unless `calls` are asked for.
SimulatedStep simulate_breakdown(sim::Scenario scenario, sim::Session& session, bool calls = true);

}  // namespace stepcast::validate
