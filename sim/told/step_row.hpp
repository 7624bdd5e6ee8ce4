// What a simulation said of a step, exactly, as a line of JSON that is kept and read again: times
// in picoseconds, powers and shares in full. Without what the scenario says before anything is
// simulated (Session::admit).
#pragma once

#include <string>
#include <string_view>

#include "sim/run/step_report.hpp"

namespace stepcast::sim {

/// The warnings from `first_warning` on.
std::string step_row(const StepReport& report, std::size_t first_warning);

/// Fills in what such a row has; its warnings come behind those that are there. Throws InputError
/// where it is none.
void read_step_row(std::string_view row, StepReport& admitted);

}  // namespace stepcast::sim
