// Words of verl, nanotron, GPT-NeoX, llm-foundry and NeMo 1, a table each; those of frameworks that
// stepcast launch writes for are in sim/launch/words.hpp. What Use::read means is in the file of
// the framework's facts.
#pragma once

#include "sim/launch/words.hpp"

namespace stepcast::sim {

LaunchWords verl_words();      // its trainers of policies: verl_words.cpp
LaunchWords verl_sft_words();  // and of demonstrations
LaunchWords nanotron_words();
LaunchWords neox_words();     // GPT-NeoX
LaunchWords foundry_words();  // llm-foundry
LaunchWords nemo_words();     // NeMo 1's YAML
LaunchWords fsdp_words();     // what stepcast launch writes for FSDP

}  // namespace stepcast::sim
