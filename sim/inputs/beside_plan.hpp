// What launch files say beside a plan: the user's own arguments and lines, and what processes read
// from the environment.
#pragma once

#include <span>
#include <string_view>

#include "sim/inputs/launch_file.hpp"
#include "sim/launch/words.hpp"

namespace stepcast::sim {

/// The setting that has a command's words with blanks in them, each ended by a zero.
inline constexpr std::string_view words_with_blanks = "@blanks";

bool is_read_from_environment(std::string_view name);

/// Arguments that are the user's own whatever the plan: data, learning rate, the tokenizer that a
/// vocabulary was read from. Those of torchrun and variables of the environment are none.
void own_arguments(const Settings& settings, WordTables tables, LaunchInput& input);

/// NCCL's variables that mean something here, and the allocator's segments; taken out of
/// `settings`. Throws InputError at file:line on a value that neither knows.
void take_environment(Settings& settings, Facts& facts, std::span<const NamedText> files);

/// As own_arguments, of what transformers and TRL read; the model by their own name. Lines of YAML
/// are kept as they stand.
void own_lines(std::span<const NamedText> files, const Settings& settings, LaunchInput& input);

}  // namespace stepcast::sim
