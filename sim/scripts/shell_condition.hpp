// What bash's tests say of texts that are known. Knows no file, no process.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace stepcast::sim {

/// Of the words of a condition, "[", "]" and their like among them; none: only a machine knows, as
/// of files, of other commands and of what commands print. A variable that nobody set is empty.
std::optional<bool> shell_condition(std::span<const std::string> words);

/// Whether a text is what a pattern of `case` means: '*' and '?'.
bool matches_pattern(const std::string& pattern, const std::string& text);

}  // namespace stepcast::sim
