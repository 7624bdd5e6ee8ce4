#include "sim/scripts/text_pieces.hpp"

#include <algorithm>

namespace stepcast::sim {

std::string_view bare(std::string_view text) {
  constexpr std::string_view whites = " \t\r\n";
  const std::size_t first = text.find_first_not_of(whites);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(whites) - first + 1);
}

bool says(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::vector<std::string_view> words_of_text(std::string_view text) {
  constexpr std::string_view gaps = " \t\r\n";
  std::vector<std::string_view> out;
  for (std::size_t at = text.find_first_not_of(gaps); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(gaps, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(gaps, end);
  }
  return out;
}

}  // namespace stepcast::sim
