// Of how many such runs a measured step is slower, by the errors of published forecasts.
#pragma once

#include <optional>

#include "sim/run/session.hpp"

namespace stepcast::validate {

/// The largest share of runs that the error bar puts below `measured_s`; none below half of them.
/// A bar of a level holds so many on both sides of the forecast together, so that at least as many
/// are no slower than its upper end; levels that its sources cannot assure are not asked for.
std::optional<double> slower_than_share(sim::StepReport report, double measured_s,
                                        sim::Session& session);

}  // namespace stepcast::validate
