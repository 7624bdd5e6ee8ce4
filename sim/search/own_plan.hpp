// The plan that a user has, beside the best of its space: which knobs differ, and what turning each
// of them alone would bring.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/search/search.hpp"

namespace stepcast::sim {

/// The own plan with one knob as the best plan has it.
struct KnobChange {
  std::string knob, from, to;
  std::optional<StepReport> report{};
  std::string refused{};  // why there is none
};

struct OwnPlan {
  KnobValues knobs;
  std::optional<StepReport> report{};
  std::string refused{};            // why there is none
  std::vector<KnobChange> changes;  // in the order of the knobs
};

/// `own` is resolved. A handful of simulations.
OwnPlan beside_best(const SearchSpace&, const SearchMachine&, const Scenario& own,
                    const KnobValues& best);

}  // namespace stepcast::sim
