// "Did you mean": the known word closest to a mistyped one, for options, keys and names. Knows no
// grammar.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stepcast::sim {

/// The candidate at the least distance from `word`, the first of equals; none when even that one
/// differs in more than a third of its letters (two typing mistakes in a short word are no typing
/// mistakes).
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

/// "did you mean 'x'?", or the few that begin with the word, or "known: a, b, c", each once; for
/// every refused name.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace stepcast::sim
