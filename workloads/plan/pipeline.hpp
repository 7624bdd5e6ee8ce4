// Pipeline schedules as data: which micro-batch a stage runs forward or backward, in which order.
// arXiv 2104.04473. Knows no times and no communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/plan/plan.hpp"

namespace stepcast::workloads {

/// What an order of turns depends on.
struct PipelineShape {
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t stages = 1;
  std::int64_t micro_batches = 1;
  std::int64_t chunks = 1;  // per stage
  bool paired = false;      // 1F1B: a forward and the backward after it run together
  SharedOrders orders{};    // of a listed schedule
};
PipelineShape pipeline_shape(const ParallelPlan&, const Batch&);

/// GPipe: all forwards, then all backwards in reverse order (as torch does). 1F1B: w warm-up
/// forwards on stage r, then forward and backward in turn, then the remaining backwards;
/// w = min(p-1-r, m). Interleaved: forwards take groups of g micro-batches through one chunk after
/// the other, backwards mirrored, w = min(2(p-1-r) + (v-1)g, mv); g = p as in Megatron, m divided
/// by rounds of at least p where p does not divide m, as in torch's pipelining/schedules.py. Paired
/// (Megatron's overlap_moe_expert_parallel_comm): one forward more before the first backward.
/// ZB-H1 (InterleavedZeroBubble there): w = min(p-1-r + (v-1)g, mv), backwards in two, the weight
/// gradients r turns later. ZB-H2 (arXiv 2401.10241): w = min(2(p-1-r) + 1, m), weight gradients 2r
/// turns later. ZB-V, DualPipe, DualPipeV: folded_orders.hpp.
std::vector<Turn> turns_of_stage(const PipelineShape&, std::int64_t stage);

/// Whether any backward of the schedule is parted in two.
bool parts_backward(const std::vector<Turn>& turns);

/// Turns [first, first + blocks x period) of a schedule that do the same, but for the micro-batch,
/// in every period. Neither a chunk's last backward nor its surroundings are among them.
struct AlikeTurns {
  std::size_t period = 0, blocks = 0;
};

/// Whether alike turns are looked for: not in pairs, nor where stages send in another order than
/// the next one receives.
bool repeats_itself(const PipelineShape&);

/// The alike turns from `first` on, those that cover most; none: no blocks.
AlikeTurns alike_turns(const std::vector<Turn>& turns, const PipelineShape&, std::size_t first);

/// The same where those chunks are alike, so that turns may differ in the chunk as well: from one
/// to the next or to that after. No chunk's first or last micro-batch is among them.
AlikeTurns alike_turns_of(const std::vector<bool>& chunks, const std::vector<Turn>& turns,
                          const PipelineShape&, std::size_t first);

/// Most of `weight_of_chunk` that forwards have brought and no backward has taken away: what a
/// stage holds at once. With weight 1 and one chunk: m for GPipe, min(p-r, m) for 1F1B; interleaved
/// min(2(p-1-r) + (v-1)p + 1, mv) chunks.
/// Zero bubble: what a forward has brought stays until the weight gradients, and
/// `more_until_weights` comes with the input's: ZB-H1 p on every stage, ZB-H2 2p-1.
std::int64_t peak_in_flight(const PipelineShape&, std::int64_t stage,
                            const std::vector<std::int64_t>& weight_of_chunk,
                            const std::vector<std::int64_t>& more_until_weights = {});

}  // namespace stepcast::workloads
