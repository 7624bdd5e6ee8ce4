// What failures leave of a run, as text and JSON.
#pragma once

#include <string>

#include "sim/form/form.hpp"
#include "sim/run/step_report.hpp"

namespace stepcast::sim {

/// Nothing for a report without [failures].
std::string goodput_text(const StepReport& report);
/// Of a report with [failures]: times in seconds, shares of wall time.
const Form<StepReport>& failures_form();

}  // namespace stepcast::sim
