// A framework's words: what each means here, since which of its releases it is there, what holds
// where it is not said. One table a framework serves whoever writes its files and whoever reads
// them. Knows no file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stepcast::sim {

enum class Use : std::uint8_t {
  count,       // a whole number above 0: `key` as it is
  flag,        // `key` as it is
  part_count,  // as count, of a part of the model (experts, latent attention) that is there
  part_flag,   // as flag, of such a part
  read,        // a part of what `key` means to the format's own code
  unsaid,      // bears on a step, and no key here says it: `key` is why, named where it is on
  ignored,     // cannot matter to a step
};

struct LaunchWord {
  std::string_view name;  // theirs, with '_' for '-'; one that ends in '*': all that begin so
  Use use;
  std::string_view key{};    // ours, or what it is about
  std::string_view usual{};  // their default where nothing is said; of `unsaid` how a value begins
                             // that changes nothing; empty: none that matters
  int since = 0;             // the first release that has it: a minor, or a year; 0: all known
  int until = 0;             // of the first that calls it otherwise; 0: none does
};

using LaunchWords = std::span<const LaunchWord>;
/// Those of a framework and of what it is started by: an earlier table goes before a later one.
using WordTables = std::span<const LaunchWords>;

/// Whether a release has it.
constexpr bool is_in(const LaunchWord& word, int release) {
  return release >= word.since && (word.until == 0 || release < word.until);
}

/// The one of exactly this name. Whoever writes a file asks it for every name, so that none is
/// written that the reader does not know; BrokenPromise: the table has none.
const LaunchWord& written_word(LaunchWords words, std::string_view name);

/// The most exact one of the first table that has one; null: none.
const LaunchWord* find_word(WordTables tables, std::string_view name);

/// Arguments of Megatron-LM, since 0.7 of its core: megatron/training/arguments.py and the
/// dataclasses that arguments are made from, at its tags core_v0.7.0 to core_v0.19.0. Names as the
/// dump prints them.
LaunchWords megatron_words();

/// Overrides of a recipe of Megatron-Bridge; releases are minors of its version 0.
LaunchWords bridge_words();

/// torchtitan's TOML of 2024 and 2025, its Python and command line of 2026; releases are years.
LaunchWords torchtitan_words();

}  // namespace stepcast::sim
