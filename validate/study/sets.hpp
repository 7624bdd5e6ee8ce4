// What the study leaves open, as sets of assumptions: keys and machines that its scenarios take.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/files/toml_value.hpp"

namespace stepcast::validate {

struct StudySet {
  std::string name{}, says{};
  std::vector<std::pair<std::string, sim::TomlValue>> keys{};  // set in every scenario
  std::map<std::string, std::string> nodes{};   // machines of the catalogue that stand for others
  std::optional<sim::TomlValue> local_batch{};  // of the weak scaling alone
  bool preset = false;  // scenarios/study/NAME.toml where there is one, else scenarios/NAME.toml

  std::string node(const std::string& asked) const {
    const auto found = nodes.find(asked);
    return found == nodes.end() ? asked : found->second;
  }
};

/// NCCL's variables alone, over the plain scenarios: {"NCCL_PROTO", "Simple"}.
StudySet with_nccl(const std::vector<std::pair<std::string, std::string>>& variables);

/// [[set]] of a file, each with `more` keys on top. Throws InputError (file:line).
std::vector<StudySet> read_study_sets(
    const std::string& path, const std::vector<std::pair<std::string, sim::TomlValue>>& more = {});

}  // namespace stepcast::validate
