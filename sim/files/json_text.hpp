// Values of nlohmann's library from and to text. Its parser and its writer are compiled for this
// file alone: they take two seconds in each that calls them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace stepcast::sim {

/// Throws nlohmann::json::parse_error.
nlohmann::json parsed_json(std::string_view text);
nlohmann::ordered_json parsed_ordered_json(std::string_view text);

/// A discarded value where the text is no JSON.
nlohmann::json json_or_discarded(std::string_view text);
nlohmann::ordered_json ordered_json_or_discarded(std::string_view text);

/// The same of what Python writes, where Infinity, -Infinity and NaN are numbers: they are null.
nlohmann::json python_json_or_discarded(std::string_view text);

/// On one line, or indented by so many blanks a level. What is no UTF-8 is replaced by U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace stepcast::sim
