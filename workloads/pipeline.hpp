// Pipeline schedules as data: which micro-batch a stage runs forward or backward, in which order.
// FRAMEWORKS 9. Knows no times and no communication.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plan.hpp"

namespace stepcast::workloads {

enum class Pass : std::uint8_t { forward, backward };

/// One entry of a stage's schedule.
struct Turn {
  Pass pass{};
  std::int64_t micro_batch = 0;
  friend bool operator==(const Turn&, const Turn&) = default;
};

/// GPipe: all forwards, then all backwards in reverse order (as torch does). 1F1B: min(p-1-r, m)
/// warm-up forwards on stage r, then forward and backward in turn, then the remaining backwards.
std::vector<Turn> turns_of_stage(Schedule, std::int64_t stages, std::int64_t stage,
                                 std::int64_t micro_batches);

/// Most micro-batches whose activations a stage holds at once: m for GPipe, min(p-r, m) for 1F1B.
std::int64_t peak_in_flight(Schedule, std::int64_t stages, std::int64_t stage,
                            std::int64_t micro_batches);

}  // namespace stepcast::workloads
