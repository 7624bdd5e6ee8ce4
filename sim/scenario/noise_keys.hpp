// Keys of a form of their own, [[noise.straggler]] and run.without: TOML to values, and back.
#pragma once

#include "sim/files/toml_table.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// Reads [[noise.straggler]]; the cluster of `scenario` is known already, so that they exist.
void read_stragglers(TableReader& noise, Scenario& scenario);

/// "latency", "latency, sharing", ["latency", "sharing"]; "none" leaves nothing out.
Ablation read_without(TableReader& run);

/// [[noise.straggler]].
TomlValue stragglers_list(const Noise& noise);

}  // namespace stepcast::sim
