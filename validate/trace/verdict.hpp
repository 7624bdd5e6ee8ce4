// Whether a trace can be of the scenario at all, by the calls of a step: times of another run mean
// nothing beside it. Knows no times.
#pragma once

#include <string>

#include "validate/trace/breakdown.hpp"
#include "validate/trace/simulated.hpp"

namespace stepcast::validate {

/// "this trace is not this scenario: 405 products against 675", or empty. Another recompute,
/// unfused attention and products in several kernels are explained; so are stages of which not all
/// are given. Empty where `measured` shows no kernels.
std::string verdict_of(const StepBreakdown& measured, const SimulatedStep& simulated);

}  // namespace stepcast::validate
