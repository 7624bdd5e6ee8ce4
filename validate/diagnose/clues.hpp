// What a log's series and the signs around a run add to an attribution.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/session.hpp"
#include "validate/diagnose/attribution.hpp"
#include "validate/diagnose/series.hpp"
#include "validate/diagnose/surroundings.hpp"

namespace stepcast::validate {

/// The mean step of the log is the measured one, its stalls and its drift are causes.
void add_series(Attribution& found, const StepSeries& series);

/// A sign of a cause that is there makes it sure. Of a log alone, a variable whose effect the
/// simulator knows is a cause of its share of what all such variables do together, at most of what
/// is not explained. All others become notes.
void add_signs(Attribution& found, const Surroundings& around, const sim::Scenario& scenario,
               bool traces, sim::Session& session, std::vector<std::string>& notes);

}  // namespace stepcast::validate
