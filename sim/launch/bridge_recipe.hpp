// A recipe of Megatron-Bridge in Python, for a model that it has none of, or for a release that has
// no script that runs one by its name.
#pragma once

#include <string>

#include "sim/launch/bridge_registry.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// Why no provider can be written for the scenario's model; empty: one can.
std::string bridge_provider_refusal(const Scenario& scenario);

/// The module; `recipe` null: a provider of the model's shape.
std::string bridge_recipe_file(const Scenario& scenario, const BridgeRecipe* recipe);

}  // namespace stepcast::sim
