// Words of verl, nanotron, Megatron-Bridge and torchtitan, a table each. What Use::read means
// is in the file of the framework's facts.
#pragma once

#include "sim/launch/words.hpp"

namespace stepcast::sim {

LaunchWords verl_words();
LaunchWords nanotron_words();
LaunchWords bridge_words();
LaunchWords torchtitan_words();  // TOML of 2024 and 2025, the command line of 2026
LaunchWords nemo_words();        // NeMo 1's YAML
LaunchWords fsdp_words();        // what stepcast launch writes for FSDP

}  // namespace stepcast::sim
