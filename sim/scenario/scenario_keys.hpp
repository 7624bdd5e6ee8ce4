// Every key of a scenario, from the one list of members.hpp: for options, help, `show keys` and
// suggestions. Knows no values but the defaults.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "sim/files/text_table.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/members.hpp"

namespace stepcast::sim {

struct ScenarioKey {
  std::string path;   // "plan.recompute_every"
  std::string type;   // "integer", "as \"64 MiB\"", "none|selective|full"
  std::string usual;  // what holds where it is not written
  Key key;
};

/// Whether a key may say "best": sim/search turns these, this list apart.
bool may_be_best(std::string_view path);

/// All, in the order of a resolved scenario.
const std::vector<ScenarioKey>& scenario_keys();

/// The options of a command line that set keys of these tables, "cluster" without those of
/// "cluster.node".
std::vector<Option> key_options(std::initializer_list<std::string_view> tables);

/// As a table.
TextTable keys_table();

/// Throws InputError at `where`, suggesting a key, when `path` does not begin with a table of a
/// scenario; what stands inside a table is checked when it is read.
void check_known(const std::string& path, const std::string& where);

}  // namespace stepcast::sim
