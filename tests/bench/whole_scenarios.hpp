// Steps whose cost is watched, by ./dev bench and by its gate: a Llama on nodes of H100, sequences
// of 4,096, FSDP2, memory not asked.
#pragma once

#include <string>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

namespace stepcast::bench {

/// `plan`: lines of [plan].
inline sim::Scenario scenario(const std::string& model, int nodes, int global,
                              const std::string& plan) {
  const std::string text =
      "title = \"bench\"\n[model]\nname = \"" + model +
      "\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\nnodes = " + std::to_string(nodes) +
      "\nfabric = \"rail-optimized\"\n[plan]\n" + plan +
      "\n[batch]\nglobal = " + std::to_string(global) +
      "\n[software]\nframework = \"pytorch-fsdp2\"\nversion = \"2.3\"\n";
  sim::Scenario s = sim::read_scenario(sim::read_toml(text, "bench.toml"), catalogue());
  s.run.ignore_memory = true;
  return s;
}

inline const std::string grid = "tensor = 4\npipeline = 4\n";

}  // namespace stepcast::bench
