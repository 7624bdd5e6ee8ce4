// Results as text: a readable page for one run, a table for a sweep, known figures beside the
// simulated ones. Three significant digits, units everywhere.
#pragma once

#include <string>

#include "sim/study/results.hpp"

namespace stepcast::sim {

std::string report_text(const Answer& answer);
std::string report_text(const Results& results);

/// The [[reference]] figures beside the simulated ones; empty when no point matches.
std::string references_text(const Results& results);

/// A swept key and value in a table: "nodes", "2,048".
std::string swept_heading(const std::string& path);
std::string swept_cell(const TomlValue& value);

}  // namespace stepcast::sim
