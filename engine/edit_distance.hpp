// How far a mistyped word is from a known one. Knows no words.
#pragma once

#include <cstddef>
#include <string_view>

namespace stepcast {

/// Least number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into
/// `b`, upper and lower case alike (optimal string alignment distance).
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace stepcast
