// A model's config.json as Hugging Face's transformers writes it, made into an entry of
// scenarios/models. What it cannot express it refuses by name.
#pragma once

#include <string>
#include <string_view>

#include "sim/files/toml_value.hpp"

namespace stepcast::sim {

bool is_model_config(std::string_view name);  // ends in .json

/// The members of a model (sim/scenario/members.hpp), `source`, and where the model is only nearly
/// the configuration's, `notes`: sentences for the user. Families: model_families(). Throws
/// InputError at `path` where the text is no such configuration, or where it asks for what is not
/// modelled: layers of state spaces or linear attention, capped logits, another family.
TomlValue model_of_config(std::string_view json, const std::string& path);

/// The same of a file of at most 4 MiB.
TomlValue read_model_config(const std::string& path);

}  // namespace stepcast::sim
