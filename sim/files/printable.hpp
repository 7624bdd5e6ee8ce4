// Text for a terminal: names come from files, logs and traces of others, and none of them may move
// the cursor, colour what follows or turn its order around. Knows no format.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace stepcast::sim {

/// The text with every control character but line breaks and tabs, every byte that is no UTF-8, and
/// what changes the direction of writing as \u001b: TOML and JSON stay what they are.
std::string printable(std::string_view text);

/// Writes it so: whatever the programs say on standard output and standard error goes through here.
void tell(std::FILE* to, std::string_view text);

}  // namespace stepcast::sim
