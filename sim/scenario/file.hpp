// Scenario files: TOML to Scenario, strictly, and back. Every mistake is an InputError with file
// and line; nothing is guessed and nothing is ignored.
#pragma once

#include <string>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// Reads one run. The keys of the document that are not about one run ([sweep], [[reference]]) must
/// have been taken out (see sweep.hpp).
Scenario read_scenario(const TomlValue& document, const Catalogue& catalogue);

/// The whole scenario, every member written out, so that it reads back to the same scenario
/// whatever the defaults and the catalogue become.
TomlValue resolved_document(const Scenario& scenario);

/// Plan, batch and precision of a step as it was run, every choice resolved, in one table: the keys
/// of [plan], [batch] and [precision], with global_batch, local_batch and framework_version.
TomlValue plan_document(const Scenario& scenario);

}  // namespace stepcast::sim
