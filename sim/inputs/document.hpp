// The scenario that facts make: what they say, the machine that follows, what nobody said.
#pragma once

#include <span>
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

/// What refuses the document on any number of nodes, once all that is missing is said; empty:
/// nothing does, or a model or a GPU is missing, without which nobody can tell.
std::string refusal_besides(const TomlValue& document, const Facts& facts,
                            const Catalogue& catalogue, std::span<const MissingKey> missing);

/// A sentence on what matters and the document leaves to the defaults; empty where nothing is.
std::string left_open(const TomlValue& document, const Scenario& scenario);

}  // namespace stepcast::sim
