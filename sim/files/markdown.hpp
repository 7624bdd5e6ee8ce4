// Text for Markdown files: names come from scenarios, rows and machines, and none of them may be a
// heading, a link, a table's next cell or HTML.
#pragma once

#include <string>
#include <string_view>

namespace stepcast::sim {

/// The text as itself, in a line or a table's cell: line breaks become spaces, what Markdown takes
/// for a mark gets a backslash.
std::string markdown_text(std::string_view text);

/// The text as a block of code, line for line: its fence is longer than any that it holds.
std::string markdown_block(std::string_view text);

}  // namespace stepcast::sim
