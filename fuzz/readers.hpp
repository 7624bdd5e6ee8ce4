// Every reader of what a user hands in, by name, as something that takes bytes. Two programs share
// the list: stepcast_fuzz (libFuzzer) and stepcast_replay (kept inputs, in the ordinary suite).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stepcast::fuzz {

using Bytes = std::span<const std::uint8_t>;

struct Reader {
  std::string_view name;
  std::string_view ending;  // of a file of it: what a reader tells formats apart by
  void (*read)(Bytes);
};

std::span<const Reader> readers();
const Reader* find_reader(std::string_view name);

/// Reads. What a user may get wrong is an InputError, a plan may not fit, and these are answers; any
/// other exception goes on, and ends the program.
void feed(const Reader& reader, Bytes bytes);

}  // namespace stepcast::fuzz
