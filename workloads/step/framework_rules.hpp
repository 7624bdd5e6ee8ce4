// What a framework makes of a plan: which plans it cannot run, and when it reduces gradients if
// nobody says. The facts are members of Software, their sources stand in scenarios/software/*.toml.
#pragma once

#include <span>

#include "workloads/plan/plan.hpp"
#include "workloads/plan/rules.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

struct FrameworkPlan {
  const TransformerShape& shape;
  const ParallelPlan& plan;
  const Software& software;
};

/// Their knobs are of [plan], or of [software].
std::span<const Rule<FrameworkPlan>> framework_rules();

/// The kinds of data parallelism that this software runs, with or without pipeline stages.
DataKinds runnable_kinds(const Software& software, bool pipeline);

/// When gradients of several micro-batches are reduced unless plan.reduce says otherwise.
ReduceWhen usual_reduction(const ParallelPlan& plan, const Software& software);

}  // namespace stepcast::workloads
