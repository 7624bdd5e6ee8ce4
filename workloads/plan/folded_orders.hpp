// Orders of stages with two chunks, of one model folded over the stages or of two mirrored copies:
// ZB-V (arXiv 2401.10241, torch's ScheduleZBVZeroBubble), DualPipe and DualPipeV (deepseek-ai's
// dualpipe.py and dualpipev.py, step()).
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plan/turn.hpp"

namespace stepcast::workloads {

std::vector<Turn> zb_v_turns(std::int64_t stages, std::int64_t micro_batches, std::int64_t stage);

/// An even number of stages, an even number of micro-batches of at least twice as many, the first
/// half of which runs down the stages, the other up.
std::vector<Turn> dualpipe_turns(std::int64_t stages, std::int64_t micro_batches,
                                 std::int64_t stage);

/// At least twice as many micro-batches as stages.
std::vector<Turn> dualpipe_v_turns(std::int64_t stages, std::int64_t micro_batches,
                                   std::int64_t stage);

}  // namespace stepcast::workloads
