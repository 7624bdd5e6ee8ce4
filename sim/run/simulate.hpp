// Binds the two: a step program from workloads, a cluster from topology, times from the kernel and
// network models, run by the engine. One call answers one scenario.
#pragma once

#include "sim/run/step_report.hpp"
#include "sim/run/timeline.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// Forecasts one step. Throws NoFeasiblePlan when a rank needs more memory than the GPU has (unless
/// scenario.run.ignore_memory), naming the parts; InputError when the degrees do not fit the model
/// or the cluster. scenario.best_tensor/best_pipeline must be resolved already (see sweep.hpp).
StepReport simulate(const Scenario& scenario);

/// The same, and what every rank did when; of ranks that are provably alike, the first.
StepReport simulate_timeline(const Scenario& scenario, Timeline& timeline);

/// Answers a scenario with a [collective] table.
CollectiveReport simulate_collective(const Scenario& scenario);

}  // namespace stepcast::sim
