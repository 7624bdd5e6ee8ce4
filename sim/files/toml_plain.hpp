// TOML as nearly all of our files are: tables, keys without dots, text without escapes, numbers,
// arrays. A tenth of the cost of toml++, which reads whatever else there is. Knows no mistake.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/files/toml_value.hpp"

namespace stepcast::sim {

/// What toml_value.hpp's read_toml() makes of the text; none where the text is not that plain, or
/// not TOML.
std::optional<TomlValue> read_plain_toml(std::string_view text, const std::string& name);
/// What toml++ makes of it.
TomlValue read_any_toml(std::string_view text, const std::string& name);

}  // namespace stepcast::sim
