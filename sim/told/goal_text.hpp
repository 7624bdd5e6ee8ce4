// A whole run as lines of a report.
#pragma once

#include <string>

#include "sim/run/step_report.hpp"

namespace stepcast::sim {

/// Of a report that has one.
std::string whole_run_text(const StepReport& report);

/// "12.3 days (10.9 to 14.1)"; without a band where there is none.
std::string banded(const Band& band, double scale = 1, const std::string& unit = "");
/// "2.03 million USD (1.8 to 2.3)"
std::string dollars_text(const Band& dollars);

/// "12.3 days (10.9 to 14.1)", below two of them in hours.
std::string days_text(const Band& days);
/// "812 MWh (740 to 900)", in kWh, MWh or GWh.
std::string energy_text(const Band& mwh);
/// "299 t CO2e (270 to 330)", or in kg.
std::string co2_text(const Band& tonnes);

}  // namespace stepcast::sim
