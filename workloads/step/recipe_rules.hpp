// Which low-precision recipes a framework runs, and on which plans. The facts of frameworks are
// members of Software, their sources stand in scenarios/software/*.toml.
#pragma once

#include <span>

#include "workloads/plan/plan.hpp"
#include "workloads/plan/rules.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

struct RecipeCase {
  const TransformerShape& shape;
  const ParallelPlan& plan;
  const Batch& batch;
  const Precision& precision;
  const Software& software;
};

/// Their knobs are of [precision], or of [plan].
std::span<const Rule<RecipeCase>> recipe_rules();

}  // namespace stepcast::workloads
