#include "sim/inputs/understanding.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stepcast::sim {
namespace {

constexpr std::size_t longest_value = 60;

std::string shown(std::string_view name, std::string_view value) {
  if (value.size() > longest_value) return fmt::format("{} = {}...", name, value.substr(0, 57));
  return fmt::format("{} = {}", name, value);
}

}  // namespace

bool is_on(std::string_view value) {
  constexpr std::string_view off[] = {"",     "None", "null", "False", "false", "0", "0.0",
                                      "none", "[]",   "{}",   "no",    "off",   "~"};
  return std::ranges::find(off, value) == std::end(off);
}

Understanding understanding_of(WordTables tables, const Settings& settings) {
  Understanding out;
  for (const auto& [name, value] : settings.all()) {
    const LaunchWord* word = find_word(tables, name);
    if (word == nullptr) {
      if (is_on(value)) out.unknown.push_back(shown(name, value));
    } else if (word->use == Use::ignored) {
      ++out.ignored;
    } else if (word->use == Use::unsaid) {
      const bool is_usual = !word->usual.empty() && value.starts_with(word->usual);
      if (is_on(value) && !is_usual)
        out.unsaid.push_back(fmt::format("{} ({})", shown(name, value), word->key));
    } else if (value.find('$') != std::string::npos) {
      out.open.push_back(shown(name, value));
    } else {
      ++out.understood;
    }
  }
  return out;
}

}  // namespace stepcast::sim
