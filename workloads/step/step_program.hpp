// One training step as lane programs: per pipeline stage, what the host thread launches, in order;
// beside them, what every kernel computes and every collective moves. This is all that leaves
// workloads: sim puts times on it. Knows no hardware and no durations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/program.hpp"
#include "engine/units.hpp"
#include "workloads/pieces/operations.hpp"
#include "workloads/plan/axes.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

struct StepProgram {
  std::vector<Kernel> kernels;          // distinct; Instruction::arg of Op::work
  std::vector<Collective> collectives;  // distinct; Instruction::arg of Op::join
  std::vector<engine::Program> roles;   // one per pipeline stage
};

/// Throws InputError at `where` when the software cannot run the plan: a rule of
/// framework_rules.hpp is broken.
void check(const TransformerShape&, const ParallelPlan&, const Software&, const std::string& where);

/// The same step with micro-batches that do the same as engine::Repeats, each written once.
StepProgram make_repeating_program(const TransformerShape& shape, const ParallelPlan& plan,
                                   const Batch& batch, const Precision& precision,
                                   const Software& software);

/// Writes the step of `shape` under `plan`. Throws BrokenPromise on a plan that check() refuses.
StepProgram make_step_program(const TransformerShape& shape, const ParallelPlan& plan,
                              const Batch& batch, const Precision& precision,
                              const Software& software);

}  // namespace stepcast::workloads
