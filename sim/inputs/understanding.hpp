// What was made of the names of a file, and what was not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/words.hpp"
#include "sim/scripts/settings.hpp"

namespace stepcast::sim {

/// Whether a setting says that something is on: not None, False, 0, none, an empty list.
bool is_on(std::string_view value);

struct Understanding {
  std::size_t understood = 0, ignored = 0;
  std::vector<std::string> unknown;  // "name = value" of names that no word is
  std::vector<std::string> unsaid;   // "name = value (why)"
  std::vector<std::string> open;     // "name = $1": what only a shell knows, of names that matter
};
Understanding understanding_of(WordTables tables, const Settings& settings);

}  // namespace stepcast::sim
