#include "workloads/pipeline.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::workloads {

std::vector<Turn> turns_of_stage(Schedule schedule, std::int64_t stages, std::int64_t stage,
                                 std::int64_t micro_batches) {
  expects(stage >= 0 && stage < stages && micro_batches > 0, "a stage of the pipeline");
  const std::int64_t m = micro_batches;
  std::vector<Turn> turns;
  turns.reserve(static_cast<std::size_t>(2 * m));
  if (schedule == Schedule::gpipe) {
    for (std::int64_t i = 0; i < m; ++i) turns.push_back({Pass::forward, i});
    for (std::int64_t i = m; i-- > 0;) turns.push_back({Pass::backward, i});
    return turns;
  }
  const std::int64_t warm_up = std::min(stages - 1 - stage, m);
  for (std::int64_t i = 0; i < warm_up; ++i) turns.push_back({Pass::forward, i});
  for (std::int64_t i = warm_up; i < m; ++i) {
    turns.push_back({Pass::forward, i});
    turns.push_back({Pass::backward, i - warm_up});
  }
  for (std::int64_t i = m - warm_up; i < m; ++i) turns.push_back({Pass::backward, i});
  return turns;
}

std::int64_t peak_in_flight(Schedule schedule, std::int64_t stages, std::int64_t stage,
                            std::int64_t micro_batches) {
  if (schedule == Schedule::gpipe) return micro_batches;
  return std::min(stages - stage, micro_batches);
}

}  // namespace stepcast::workloads
