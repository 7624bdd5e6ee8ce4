// Seeded damage to a text file: what a cut, a bad paste or an edit may do to it. Same seed, same
// text.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>

#include "calibrate/rows/text_lines.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate {

inline std::string fixture(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/tests/calibrate/fixtures/" + name;
}

/// One to four of: a byte changed, a stretch dropped, a stretch doubled, the end cut, a digit put
/// in.
inline std::string mutated(std::string text, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t left = 1 + below(4); left > 0 && !text.empty(); --left) {
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(80));
        break;
      case 2:
        text.insert(at, text.substr(at, 1 + below(200)));
        break;
      case 3:
        text.resize(at);
        break;
      default:
        text.insert(at, std::string(1, static_cast<char>('0' + below(10))));
    }
  }
  return text;
}

/// Reads 3,000 damaged versions: each is understood or refused with file and line, nothing else.
template <class Reader>
void survives_damage(const std::string& text, Reader&& read) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    try {
      read(mutated(text, seed));
    } catch (const InputError& error) {
      ++refused;
      const std::string message = error.what();
      INFO(seed << ": " << message);
      REQUIRE((message.starts_with("damaged:") || message.starts_with("--")));
    }
  }
  CHECK(refused > 100);  // the damage is real
}

}  // namespace stepcast::calibrate
