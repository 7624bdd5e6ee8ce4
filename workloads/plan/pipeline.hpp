// Pipeline schedules as data: which micro-batch a stage runs forward or backward, in which order.
// arXiv 2104.04473. Knows no times and no communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/plan/plan.hpp"

namespace stepcast::workloads {

enum class Pass : std::uint8_t { forward, backward };

/// One entry of a stage's schedule: a micro-batch through one of the stage's model chunks.
struct Turn {
  Pass pass{};
  std::int64_t micro_batch = 0;
  std::int64_t chunk = 0;
  friend bool operator==(const Turn&, const Turn&) = default;
};

/// What an order of turns depends on.
struct PipelineShape {
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t stages = 1;
  std::int64_t micro_batches = 1;
  std::int64_t chunks = 1;  // per stage
};

/// GPipe: all forwards, then all backwards in reverse order (as torch does). 1F1B: w warm-up
/// forwards on stage r, then forward and backward in turn, then the remaining backwards;
/// w = min(p-1-r, m). Interleaved: forwards take groups of g micro-batches through one chunk after
/// the other, backwards mirrored, w = min(2(p-1-r) + (v-1)g, mv); g = p as in Megatron, m divided
/// by rounds of at least p where p does not divide m, as in torch's pipelining/schedules.py.
std::vector<Turn> turns_of_stage(const PipelineShape&, std::int64_t stage);

/// Turns [first, first + blocks x period) of a schedule that do the same, but for the micro-batch,
/// in every period. Neither a chunk's last backward nor its surroundings are among them.
struct AlikeTurns {
  std::size_t period = 0, blocks = 0;
};

/// The alike turns from `first` on, those that cover most; none: no blocks.
AlikeTurns alike_turns(const std::vector<Turn>& turns, const PipelineShape&, std::size_t first);

/// The same where those chunks are alike, so that turns may differ in the chunk as well: from one
/// to the next or to that after. No chunk's first or last micro-batch is among them.
AlikeTurns alike_turns_of(const std::vector<bool>& chunks, const std::vector<Turn>& turns,
                          const PipelineShape&, std::size_t first);

/// Most of `weight_of_chunk` that forwards have brought and no backward has taken away: what a
/// stage holds at once. With weight 1 and one chunk: m for GPipe, min(p-r, m) for 1F1B; interleaved
/// min(2(p-1-r) + (v-1)p + 1, mv) chunks.
std::int64_t peak_in_flight(const PipelineShape&, std::int64_t stage,
                            const std::vector<std::int64_t>& weight_of_chunk);

}  // namespace stepcast::workloads
