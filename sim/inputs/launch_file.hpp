// Launch files and configurations of others, told apart by what stands in them: what a run is, as
// facts. Nothing of theirs is executed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/inputs/facts.hpp"
#include "sim/inputs/understanding.hpp"

namespace stepcast::sim {

struct LaunchInput {
  std::string format;  // "the YAML of Axolotl"
  Facts facts;
  Understanding understanding;
  std::string stack{};  // of own_words.hpp: what is written goes over the user's own file
  std::vector<std::string> own_arguments{};   // "--lr 3e-4": of a command line, in no plan
  std::vector<std::string> open_arguments{};  // of them those whose value only a shell knows
  std::vector<std::string> cut_arguments{};   // and those that $(cat FILE) would take apart
  std::string json{};                         // DeepSpeed's, where that alone was read
  std::vector<std::string> own_lines{};  // "dataset_name: mine", of TRL's YAML, in no plan; a key
                                         // with the lines below it
};

struct NamedText {
  std::string path, text;  // "configs.py#llama3_8b": one function of it
};

/// Files of one run, "train.yaml" and "accelerate.yaml": of two that say the same the first holds.
/// None where they are of no format that is known. Configurations that they name are looked for
/// beside them. Throws InputError at `path`:line.
std::optional<LaunchInput> read_launch_files(std::span<const NamedText> files,
                                             const Catalogue& catalogue);

/// Whether JSON is a framework's configuration: DeepSpeed's, or what stepcast launch writes for
/// FSDP.
bool is_launch_json(const NamedText& file);

/// The same of TOML that was read already: torchtitan's of 2024 and 2025.
std::optional<LaunchInput> torchtitan_input(const TomlValue& document, const std::string& path,
                                            const Catalogue& catalogue);

/// What a person is told of it, a sentence each.
std::vector<std::string> sentences_on(const LaunchInput& input);

}  // namespace stepcast::sim
