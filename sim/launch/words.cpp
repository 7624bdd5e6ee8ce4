#include "sim/launch/words.hpp"

#include <algorithm>
#include <string>

#include "engine/check.hpp"

namespace stepcast::sim {

const LaunchWord& written_word(LaunchWords words, std::string_view name) {
  const auto found = std::ranges::find(words, name, &LaunchWord::name);
  if (found == words.end()) throw BrokenPromise(std::string(name) + " is in no table of words");
  return *found;
}

const LaunchWord* find_word(WordTables tables, std::string_view name) {
  for (const LaunchWords& words : tables) {
    const LaunchWord* best = nullptr;
    for (const LaunchWord& word : words) {
      if (word.name == name) return &word;
      const bool begins =
          word.name.ends_with('*') && name.starts_with(word.name.substr(0, word.name.size() - 1));
      if (begins && (best == nullptr || word.name.size() > best->name.size())) best = &word;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

}  // namespace stepcast::sim
