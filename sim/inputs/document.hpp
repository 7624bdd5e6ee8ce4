// The scenario that facts make: what they say, the machine that follows, what nobody said.
#pragma once

#include <string>
#include <vector>

#include "sim/inputs/facts.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// Every fact under its key. `where`: the file's name in messages.
TomlValue facts_document(const Facts& facts, const std::string& where);

/// [cluster] where the facts name GPU and ranks and the document leaves it open. A model without a
/// name is "as-logged".
void complete_machine(TomlValue& document, const Facts& facts, const Catalogue& catalogue);

struct MissingKey {
  std::string key, example;
  std::string option;  // that sets it, "--gpu h100"
};
/// What the document lacks to be a scenario, all at once.
std::vector<MissingKey> missing_keys(const TomlValue& document, const Facts& facts,
                                     const Catalogue& catalogue);

/// A sentence on what matters and the document leaves to the defaults; empty where nothing is.
std::string left_open(const TomlValue& document, const Scenario& scenario);

}  // namespace stepcast::sim
