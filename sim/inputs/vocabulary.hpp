// Vocabularies that a tokenizer has and a launch does not say.
#pragma once

#include <string>

#include "sim/inputs/facts.hpp"

namespace stepcast::sim {

/// Names the catalogue's model of which the facts say every key, so that another framework can be
/// told it.
void add_model_name(Facts& facts, const Catalogue& catalogue, const std::string& source);

/// Where model.vocab is not said: that of the tokenizer's kind or of its model, else of the
/// catalogue's model with the same layers, with a note.
void add_vocabulary(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                    const std::string& source);

}  // namespace stepcast::sim
