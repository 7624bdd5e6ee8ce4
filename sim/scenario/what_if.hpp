// What-ifs: keys of a scenario changed by a value or a factor, "gpu.tensor_peak x2", "node.nic =
// 800 Gbit/s", as the key what_if of a scenario and --what-if of compare write them. Knows no
// simulation.
#pragma once

#include <string>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

/// One change of one key, or of the few that a word such as gpu.clock stands for.
struct WhatIf {
  std::vector<std::string> keys;  // "cluster.node.gpu.tensor_peak"
  double factor = 1;              // of what holds without it, where no value is given
  std::string value{};            // "800 Gbit/s"; empty: a factor
};

/// "KEY = VALUE", "KEY x2", "KEY * 2", "KEY / 2", "KEY +10 %", "KEY -10 %", several with commas;
/// "none" and "" change nothing. gpu., node. and fabric. stand for their tables in [cluster], and
/// gpu.clock for the four peaks. Throws InputError at `where`, suggesting a key.
std::vector<WhatIf> read_what_ifs(const std::string& text, const std::string& where);

/// The document without its key what_if, and with the keys set that it names: a factor is of what
/// the document says without any. Throws InputError where a factor has nothing to act on.
TomlValue with_what_ifs(const TomlValue& document, const Catalogue& catalogue);

}  // namespace stepcast::sim
