#include "sim/files/printable.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

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
    const Character next = first_of(text);
    if (is_harmless(next))
      out += text.substr(0, next.bytes);
    else
      out += fmt::format("\\u{:04x}", next.code);
    text.remove_prefix(next.bytes);
  }
  return out;
}

void tell(std::FILE* to, std::string_view text) {
  const std::string safe = printable(text);
  std::fwrite(safe.data(), 1, safe.size(), to);
}

}  // namespace stepcast::sim
