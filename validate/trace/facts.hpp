// What traces say of the run beside its logs (sim/inputs), as keys of a scenario: to write the
// scenario, or to hold it against one that was given. Knows no times.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "sim/inputs/document.hpp"
#include "sim/inputs/facts.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/trace/records/events.hpp"

namespace stepcast::validate {

using sim::add_facts;
using sim::Fact;
using sim::Facts;

void add_facts(Facts& facts, const RankTrace& trace, const sim::Catalogue& catalogue);
/// What the file at `path` says, over what others said before; not its notes.
void add_facts(Facts& facts, const Facts& more, const std::string& path);

/// Sentences on every fact that the scenario says otherwise, both values in each.
std::vector<std::string> contradictions(const Facts& facts, const sim::Scenario& scenario,
                                        const sim::GpuIdentities& known);

/// The scenario that the facts make, `settings` over them. Throws InputError naming every key that
/// nobody said.
sim::TomlValue document_of(const Facts& facts,
                           const std::vector<std::pair<std::string, sim::TomlValue>>& settings,
                           const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
