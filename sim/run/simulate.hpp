// Binds the two: a step program from workloads, a cluster from topology, times from the kernel and
// network models, run by the engine. Reads nothing; session.hpp has what a scenario names and puts
// these calls together.
#pragma once

#include <functional>
#include <memory>

#include "sim/run/machine.hpp"
#include "sim/run/memory_odds.hpp"
#include "sim/run/step_report.hpp"
#include "sim/run/step_system.hpp"
#include "sim/run/timeline.hpp"
#include "sim/scenario/scenario.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// Throws InputError on more micro-batches than the budget allows (unless run.no_limit).
void check_budget(const Scenario& scenario);

/// The report of a step that may be simulated: scenario, memory, warnings. Throws NoFeasiblePlan
/// when a plan surely needs more memory than the GPU has: when `odds`, asked where the forecast is
/// above it, give it less than scenario.run.refuse_below to fit (unless run.ignore_memory), naming
/// the parts; InputError when the degrees do not fit the model.
StepReport admitted(const Scenario& scenario, const std::function<const MemoryOdds&()>& odds = {});

/// A step with the times of its works and transfers, without noise.
struct BoundStep {
  std::shared_ptr<const Network> network;  // which the step's layout speaks of
  workloads::StepProgram program;
  StepSystem step;
};
/// `program` is that of the scenario, its micro-batches written out or as repeats.
BoundStep bind_step(const Scenario& scenario, workloads::StepProgram program,
                    std::shared_ptr<const Network> network, const KernelModel& kernels);

/// Runs what was bound for `report.scenario` and fills in the report. `timeline`, where one is
/// given: what the ranks that it asks for did when, once `approval` has heard how much that is.
/// Throws InputError where it asks for a rank that is not there.
void simulate(StepReport& report, BoundStep bound, Timeline* timeline = nullptr,
              const TimelineApproval& approval = {});

/// Answers a scenario with a [collective] table.
CollectiveReport simulate_collective(const Scenario& scenario, const Network& network);

}  // namespace stepcast::sim
