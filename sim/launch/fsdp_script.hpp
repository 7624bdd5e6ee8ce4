// train_fsdp2.py, which stepcast launch writes beside fsdp.json.
#pragma once

#include <string>

#include "sim/launch/forms.hpp"

namespace stepcast::sim {

/// What the scenario asks for and the script has not; empty: it has all.
std::string fsdp_script_lacks(const Scenario& scenario);
std::string fsdp_script();

}  // namespace stepcast::sim
