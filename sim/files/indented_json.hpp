// One line of JSON as text for people. Knows no value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stepcast::sim {

/// What nlohmann's dump(2) writes of a value of which `line` is its dump(): as it stands `depth`
/// blanks deep in another.
std::string indented_json(std::string_view line, std::size_t depth);

}  // namespace stepcast::sim
