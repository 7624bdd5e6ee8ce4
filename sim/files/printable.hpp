// Text for a terminal: names come from files, logs and traces of others, and none of them may move
// the cursor, colour what follows or turn its order around. Knows no format.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace stepcast::sim {

/// The text with every control character but line breaks and tabs, every byte that is no UTF-8, and
/// what changes the direction of writing as \u001b: TOML and JSON stay what they are.
std::string printable(std::string_view text);

/// Broken at blanks into lines of at most 100 columns, the first of which begins at column `from`;
/// those after it are indented by `indent`. A word that is longer stands alone.
std::string folded(std::string_view text, std::size_t from = 0, std::size_t indent = 0);

/// Writes it so: whatever the programs say on standard output and standard error goes through here.
void tell(std::FILE* to, std::string_view text);

}  // namespace stepcast::sim
