#include "sim/files/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/files/colour.hpp"

namespace stepcast::sim {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool valid = true;
};

/// The first character of a text that is not empty; a byte that begins none stands for itself.
Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead};
  const std::size_t bytes = lead < 0xc2   ? 0
                            : lead < 0xe0 ? 2
                            : lead < 0xf0 ? 3
                            : lead < 0xf5 ? 4
                                          : 0;
  if (bytes == 0 || bytes > text.size()) return {lead, 1, false};
  std::uint32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80U) return {lead, 1, false};
    code = code << 6U | (next & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};  // no longer spelling
  if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return {lead, 1, false};
  return {code, bytes};
}

bool is_plain_ascii(char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t'; }

bool is_harmless(const Character& c) {
  const bool controls = c.code < 0x20 || (c.code >= 0x7f && c.code < 0xa0);
  const bool turns = (c.code >= 0x202a && c.code <= 0x202e) ||  // Unicode's bidirectional controls
                     (c.code >= 0x2066 && c.code <= 0x2069) || c.code == 0x2028 || c.code == 0x2029;
  return c.valid && (c.code == '\n' || c.code == '\t' || (!controls && !turns));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto plain =
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain_ascii) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Character next = first_of(text);
    if (is_harmless(next))
      out += text.substr(0, next.bytes);
    else
      out += fmt::format("\\u{:04x}", next.code);
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::string folded(std::string_view text, std::size_t from, std::size_t indent) {
  constexpr std::size_t columns = 100;
  const auto letters = [](std::string_view word) {
    return static_cast<std::size_t>(std::ranges::count_if(
        word, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  };
  std::string out;
  std::size_t column = from;
  for (std::size_t begin = 0; begin < text.size();) {
    // A word with the blanks before it, which stay unless the line ends there.
    const std::size_t word = std::min(text.find_first_not_of(' ', begin), text.size());
    const std::size_t end = std::min(text.find(' ', word), text.size());
    const std::size_t width = letters(text.substr(begin, end - begin));
    if (begin > 0 && column + width > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      begin = word;
    }
    out += text.substr(begin, end - begin);
    column += letters(text.substr(begin, end - begin));
    begin = end;
  }
  return out;
}

void tell(std::FILE* to, std::string_view text) { tell_best(to, text, {}); }

}  // namespace stepcast::sim
