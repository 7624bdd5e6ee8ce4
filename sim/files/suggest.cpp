#include "sim/files/suggest.hpp"

#include <algorithm>

#include "engine/edit_distance.hpp"

namespace stepcast::sim {
namespace {

/// Mistakes forgiven in a word of this length: one in the shortest, then a third of the letters.
std::size_t tolerance(std::size_t length) { return std::max<std::size_t>(1, length / 3); }

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
  std::string out = "known:";
  for (auto name = known.begin(); name != known.end(); ++name)
    if (std::find(known.begin(), name, *name) == name)
      out += (name == known.begin() ? " " : ", ") + *name;
  return out;
}

}  // namespace stepcast::sim
