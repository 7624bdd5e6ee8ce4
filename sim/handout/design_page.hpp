// The answer to a goal as a page to hand on: which cluster, for whoever pays; then its bill, what
// would change it, what was ruled out.
#pragma once

#include <string>
#include <vector>

#include "sim/handout/step_handout.hpp"
#include "sim/told/design.hpp"

namespace stepcast::sim {

struct DesignHandout {
  const DesignTold& told;             // borrowed
  const TomlValue& asked;             // the goal, as it was read; borrowed
  std::vector<std::string> warnings;  // that hold of every answer
  std::optional<StepHandout> step{};  // of the cheapest
};

Told design_page(const DesignHandout& handout, const Catalogue& catalogue, const Origin& origin);

}  // namespace stepcast::sim
