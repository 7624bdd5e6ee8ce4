// Plans that the tests of launch forms write, and what a written file lacks.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/launch/launch.hpp"
#include "tests/sim/made_up_answers.hpp"

namespace stepcast::sim {

inline Scenario scenario(const std::string& toml) {
  return read_scenario(read_toml(toml, "a.toml"), shipped_catalogue());
}

/// A 70B on 512 GPUs under this framework, with these lines of [plan].
inline Scenario large(const std::string& framework, const std::string& plan) {
  return scenario(
      "[model]\nname = \"llama2-70b\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\n"
      "nodes = 64\n[batch]\nglobal = 1024\nmicro_batch = 1\n[software]\nframework = \"" +
      framework + "\"\n" + (framework == "torchtitan" ? "version = \"2025\"\n" : "") + "[plan]\n" +
      plan);
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

/// Of `wanted`, what the file lacks.
inline std::vector<std::string> missing(const LaunchFile& file,
                                        const std::vector<std::string>& wanted) {
  const auto lines = lines_of(file.text);
  std::vector<std::string> out;
  for (const std::string& one : wanted)
    if (std::count(lines.begin(), lines.end(), one) == 0) out.push_back(one);
  return out;
}

using None = std::vector<std::string>;

}  // namespace stepcast::sim
