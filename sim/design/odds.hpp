// How sure it is that a forecast run keeps to its limits, from the error bar of its step.
#pragma once

#include <optional>

#include "sim/design/design.hpp"

namespace stepcast::sim {

/// The error of the step is taken as log-normal with the bar's ends as its quantiles, so that of
/// cases outside the bar half lie on each side. Days and dollars grow with the step; the price is
/// log-normal as well, with the ends of its range as 80 % bar. None without a bar, or without a
/// deadline and a budget.
std::optional<double> odds_of(const DesignChoice&, const DesignLimits&);

/// How much longer than forecast the step may take in a share `p` of cases; 1 without a bar.
double step_factor(const StepReport&, double p);

}  // namespace stepcast::sim
