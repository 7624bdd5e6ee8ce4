// What a model may not be, and what of a model no step can be written for yet, as tables of rules.
#pragma once

#include <span>

#include "workloads/plan/rules.hpp"

namespace stepcast::workloads {

/// Sizes that contradict each other.
std::span<const Rule<TransformerShape>> shape_rules();
/// Models whose parameters and FLOPs are known, but not their steps.
std::span<const Rule<TransformerShape>> unwritten_models();

}  // namespace stepcast::workloads
