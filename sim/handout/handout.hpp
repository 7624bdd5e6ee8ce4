// What every page ends with, and where pages go: the file of --report and the folder of --svg.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/told/told.hpp"

namespace stepcast::sim {

/// How an answer came about.
struct Origin {
  std::string command;  // as a shell reads it
};

/// Every input with its value and source: machine, model, software, prices. Of several scenarios
/// what they share stands once.
ToldSection inputs_section(const std::vector<const Scenario*>& scenarios,
                           const Catalogue& catalogue);

/// Command line, version, date; the resolved scenario where there is one.
ToldSection origin_section(const Origin& origin, const Scenario* scenario);

/// Where to: an empty name is not written.
struct HandoutFiles {
  std::string report, svg;
  bool any() const { return !report.empty() || !svg.empty(); }
};

/// Throws as write_page() does.
void write_handout(const HandoutFiles& files, const Told& page);

}  // namespace stepcast::sim
