// What stepcast launch and stepcast convert share.
#pragma once

#include "sim/files/toml_value.hpp"
#include "sim/launch/launch.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// The one plan of a document. Throws InputError where it has several, or open degrees.
Scenario launched(TomlValue document, const Catalogue& catalogue);

/// Prints its files, or writes them to --out; what they do not say goes to standard error. Throws
/// InputError where the framework cannot be told the plan.
int tell_launch(Launch launch, const Scenario& scenario, const Arguments& arguments);

}  // namespace stepcast::sim
