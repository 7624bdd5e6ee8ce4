#include "sim/files/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "engine/edit_distance.hpp"

namespace stepcast::sim {
namespace {

/// Mistakes forgiven in a word of this length: one in the shortest, then a third of the letters.
std::size_t tolerance(std::size_t length) { return std::max<std::size_t>(1, length / 3); }

/// "GPT-3" as "gpt3".
std::string plain(std::string_view word) {
  std::string out;
  for (const char c : word)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The candidates that begin with `word`, each once, where they are few and the word is none of a
/// letter or two: "'gpt3-175b'".
std::string longer_words(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t shortest = 3, most = 4;
  const std::string begin = plain(word);
  if (begin.size() < shortest) return {};
  std::vector<std::string> found;
  for (const std::string& candidate : candidates)
    if (plain(candidate).starts_with(begin) && std::ranges::find(found, candidate) == found.end())
      found.push_back(candidate);
  if (found.size() > most) return {};
  std::string out;
  for (const std::string& name : found) out += (out.empty() ? "'" : " or '") + name + "'";
  return out;
}

}  // namespace

std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (longer - shorter > tolerance(longer)) continue;  // the distance is at least this
    const std::size_t distance = edit_distance(word, candidate);
    if (distance > tolerance(longer)) continue;
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  if (const auto close = closest(word, known)) return "did you mean '" + *close + "'?";
  if (known.empty()) return {};
  if (const std::string longer = longer_words(word, known); !longer.empty())
    return "did you mean " + longer + "?";
  std::string out = "known:";
  for (auto name = known.begin(); name != known.end(); ++name)
    if (std::find(known.begin(), name, *name) == name)
      out += (name == known.begin() ? " " : ", ") + *name;
  return out;
}

}  // namespace stepcast::sim
