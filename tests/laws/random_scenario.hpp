// Scenarios that RapidCheck draws: whatever a user may write of a step, on clusters small enough to
// simulate every rank of. Every drawn number shrinks to what is plainest, so one that breaks a law
// shrinks to a scenario with little in it. Knows no law.
#pragma once

#include "sim/files/toml_value.hpp"

namespace stepcast::sim::laws {

/// Of models: a few layers of one, or all of it, where nothing is simulated.
enum class Depth { few_layers, whole };

/// As a user writes it; the program may refuse it. Within a property alone.
TomlValue drawn_scenario(Depth depth = Depth::few_layers);

}  // namespace stepcast::sim::laws
