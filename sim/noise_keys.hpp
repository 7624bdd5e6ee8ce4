// The keys of [noise] and run.without: TOML to values, strictly, and back.
#pragma once

#include "sim/scenario.hpp"
#include "sim/toml_table.hpp"

namespace stepcast::sim {

/// Reads [noise]; the cluster of `scenario` is known already, so that stragglers exist.
void read_noise(TableReader& table, Scenario& scenario);

/// "latency", "latency, sharing", ["latency", "sharing"]; "none" leaves nothing out.
Ablation read_without(TableReader& run);

TomlValue noise_table(const Noise& noise);

}  // namespace stepcast::sim
