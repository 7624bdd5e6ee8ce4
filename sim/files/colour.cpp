#include "sim/files/colour.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sim/files/printable.hpp"

namespace stepcast::sim {
namespace {

/// How much of a line warns: "warning" before a colon or a blank.
std::size_t warns(std::string_view line) {
  constexpr std::string_view word = "warning";
  if (!line.starts_with(word) || line.size() == word.size()) return 0;
  return line[word.size()] == ':' || line[word.size()] == ' ' ? word.size() : 0;
}

/// Where a line says what is refused, [first, second): "no plan fits", the count of "4 of 16 points
/// refused: ...", the word of a row that says "refused: why".
std::pair<std::size_t, std::size_t> refuses(std::string_view line) {
  constexpr std::string_view none = "no plan fits", word = "refused:";
  if (line.starts_with(none)) return {0, none.size()};
  if (line.starts_with("refused ")) return {0, word.size() - 1};
  const std::size_t at = line.find(word);
  if (at == std::string_view::npos) return {0, 0};
  const bool counts = line.find(" points ") < at;
  return {counts ? 0 : at, at + word.size() - 1};
}

}  // namespace

bool may_colour(std::FILE* to) {
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (none == nullptr || *none == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb") && isatty(fileno(to)) != 0;
}

std::string in_hue(Hue hue, std::string_view text) {
  const auto code = [&] {
    switch (hue) {
      case Hue::best:
        return "1;32";
      case Hue::refused:
        return "31";
      case Hue::warning:
        return "33";
    }
    return "0";
  }();
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::string with_hues(std::string_view text, std::string_view best) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const auto [from, to] = refuses(line);
    if (const std::size_t word = warns(line); word > 0)
      out.append(in_hue(Hue::warning, line.substr(0, word))).append(line.substr(word));
    else if (!best.empty() && line.starts_with(best))
      out += in_hue(Hue::best, line);
    else if (to > 0)
      out.append(line.substr(0, from))
          .append(in_hue(Hue::refused, line.substr(from, to - from)))
          .append(line.substr(to));
    else
      out += line;
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

void tell_best(std::FILE* to, std::string_view text, std::string_view best) {
  const std::string safe = printable(text);
  const std::string out = may_colour(to) ? with_hues(safe, best) : safe;
  std::fwrite(out.data(), 1, out.size(), to);
}

void tell_refused(std::FILE* to, std::string_view text) {
  const std::string safe = printable(text);
  const std::string out = may_colour(to) ? in_hue(Hue::refused, safe) : safe;
  std::fwrite(out.data(), 1, out.size(), to);
}

}  // namespace stepcast::sim
