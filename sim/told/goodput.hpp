// What failures leave of a run, as text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/run/step_report.hpp"

namespace stepcast::sim {

/// Nothing for a report without [failures].
std::string goodput_text(const StepReport& report);
/// Of a report with [failures]: times in seconds, shares of wall time.
nlohmann::ordered_json goodput_json(const StepReport& report);

}  // namespace stepcast::sim
