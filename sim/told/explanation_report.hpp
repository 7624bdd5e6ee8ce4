// `stepcast collective ... --explain`: an explanation as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/run/step_report.hpp"

namespace stepcast::sim {

/// Lines under the ones that every collective prints. The report has an explanation.
std::string explanation_text(const CollectiveReport& report);

nlohmann::ordered_json explanation_json(const CollectiveReport& report);

}  // namespace stepcast::sim
