// A launch file that a test has as text, read.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/inputs/document.hpp"
#include "sim/inputs/launch_file.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {

inline LaunchInput input_of(const std::string& text, const std::string& path = "file") {
  const NamedText file{path, text};
  auto found = read_launch_files({&file, 1}, catalogue());
  REQUIRE(found);
  return *found;
}

/// On so many nodes of 8 H100.
inline Scenario scenario_of(const LaunchInput& input, std::int64_t nodes,
                            const std::string& model = "") {
  TomlValue document = facts_document(input.facts, "file");
  set_path(document, "cluster.node", toml_text("dgx-h100", "--gpu"));
  set_path(document, "cluster.nodes", {nodes, "--nodes"});
  if (!model.empty()) set_path(document, "model.name", toml_text(model, "--model"));
  complete_machine(document, input.facts, catalogue());
  CHECK(missing_keys(document, input.facts, catalogue()).empty());
  return read_scenario(document, catalogue());
}

inline std::string text_of(const Facts& facts, const char* key) {
  const TomlValue* found = facts.find(key);
  return found == nullptr ? "" : write_toml_value(*found);
}

inline bool says(const std::vector<std::string>& all, const std::string& words) {
  return std::ranges::any_of(
      all, [&](const std::string& one) { return one.find(words) != std::string::npos; });
}

}  // namespace stepcast::sim
