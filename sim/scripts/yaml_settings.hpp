// YAML and JSON as settings: a name is the path to its value, "fsdp_config.fsdp_version". Knows no
// framework.
#pragma once

#include <string>
#include <string_view>

#include "sim/scripts/settings.hpp"

namespace stepcast::sim {

/// Lists are texts, "[q_proj, v_proj]"; of a list of tables each has its number: "datasets.0.path".
/// Throws InputError at `name`:line on what is no YAML, no table, or larger than any
/// configuration.
Settings read_yaml_settings(std::string_view text, const std::string& name);

/// The same of a JSON object.
Settings read_json_settings(std::string_view text, const std::string& name);

}  // namespace stepcast::sim
