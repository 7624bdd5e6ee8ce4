#include "sim/files/indented_json.hpp"

#include <algorithm>

namespace stepcast::sim {
namespace {

constexpr std::size_t step = 2;

/// Behind the text that begins at `at`.
std::size_t end_of_text(std::string_view line, std::size_t at) {
  std::size_t end = at + 1;
  while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2U : 1U;
  return std::min(end + 1, line.size());
}

}  // namespace

std::string indented_json(std::string_view line, std::size_t depth) {
  std::string out;
  out.reserve(2 * line.size());
  const auto new_line = [&] { out.append(1, '\n').append(depth, ' '); };
  for (std::size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == '"') {
      const std::size_t end = end_of_text(line, at);
      out += line.substr(at, end - at);
      at = end;
      continue;
    }
    const char next = at + 1 < line.size() ? line[at + 1] : '\0';
    if ((c == '{' && next == '}') || (c == '[' && next == ']')) {
      out += c;
      out += next;
      at += 2;
      continue;
    }
    if (c == '}' || c == ']') {
      depth -= step;
      new_line();
    }
    out += c;
    if (c == ':') out += ' ';
    if (c == '{' || c == '[') depth += step;
    if (c == '{' || c == '[' || c == ',') new_line();
    ++at;
  }
  return out;
}

}  // namespace stepcast::sim
