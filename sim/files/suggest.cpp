#include "sim/files/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace stepcast::sim {
namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

/// Mistakes forgiven in a word of this length: one in the shortest, then a third of the letters.
std::size_t tolerance(std::size_t length) { return std::max<std::size_t>(1, length / 3); }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the dynamic programme over prefixes: d[i-2], d[i-1], d[i].
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      const bool swapped =
          i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

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
