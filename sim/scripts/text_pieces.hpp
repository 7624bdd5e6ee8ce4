// Pieces of a text that the readers of files share.
#pragma once

#include <string_view>
#include <vector>

namespace stepcast::sim {

/// Without blanks and ends of lines around it.
std::string_view bare(std::string_view text);
/// Whether the word is somewhere in it.
bool says(std::string_view text, std::string_view word);
/// Between its blanks, as an unquoted $(cat FILE) is cut; views of `text`.
std::vector<std::string_view> words_of_text(std::string_view text);

}  // namespace stepcast::sim
