#include "sim/files/markdown.hpp"

#include <algorithm>

#include "sim/files/printable.hpp"

namespace stepcast::sim {

std::string markdown_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (std::string_view("\\`*[]<>|&#~$").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' || c == '\t' ? ' ' : c;
  }
  return out;
}

std::string markdown_block(std::string_view text) {
  const std::string shown = printable(text);
  std::size_t longest = 2, run = 0;
  for (const char c : shown) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const bool ends = shown.empty() || shown.back() == '\n';
  return fence + "\n" + shown + (ends ? "" : "\n") + fence + "\n";
}

}  // namespace stepcast::sim
