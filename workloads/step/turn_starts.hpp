// Where the turns of a stage begin among the kernels of its compute lane. For who has the kernels'
// times and asks for those of the turns.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plan/turn.hpp"

namespace stepcast::workloads {

struct StepInputs;

struct TurnStarts {
  std::vector<Turn> turns;
  /// By turn, and last of the update: kernels that the compute lane has run before, in a step.
  std::vector<std::uint32_t> kernels_before;
};
TurnStarts turn_starts(const StepInputs&, std::int64_t stage);

}  // namespace stepcast::workloads
