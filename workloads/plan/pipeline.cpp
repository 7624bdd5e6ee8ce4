#include "workloads/plan/pipeline.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::workloads {
namespace {

/// Micro-batches that pass through one chunk before the next chunk has its turn.
std::int64_t group_of(const PipelineShape& p) {
  if (p.chunks == 1) return p.micro_batches;
  const std::int64_t rounds = std::max<std::int64_t>(1, p.micro_batches / p.stages);
  expects(p.micro_batches % rounds == 0, "micro-batches that check() accepts");
  return p.micro_batches / rounds;
}

/// The k-th forward or backward of a stage; backwards take the chunks from the last.
Turn turn_of(const PipelineShape& p, Pass pass, std::int64_t k) {
  const std::int64_t group = group_of(p), round = group * p.chunks;
  const std::int64_t chunk = k % round / group;
  return {pass, k / round * group + k % group,
          pass == Pass::forward ? chunk : p.chunks - 1 - chunk};
}

std::int64_t warm_up_of(const PipelineShape& p, std::int64_t stage) {
  const std::int64_t after = p.stages - 1 - stage;
  if (p.chunks == 1) return std::min(after, p.micro_batches);
  return std::min(2 * after + (p.chunks - 1) * group_of(p), p.micro_batches * p.chunks);
}

}  // namespace

std::vector<Turn> turns_of_stage(const PipelineShape& p, std::int64_t stage) {
  expects(stage >= 0 && stage < p.stages && p.micro_batches > 0, "a stage of the pipeline");
  const std::int64_t all = p.micro_batches * p.chunks;
  std::vector<Turn> turns;
  turns.reserve(static_cast<std::size_t>(2 * all));
  if (p.schedule == Schedule::gpipe) {
    expects(p.chunks == 1, "GPipe without chunks");
    for (std::int64_t i = 0; i < all; ++i) turns.push_back({Pass::forward, i});
    for (std::int64_t i = all; i-- > 0;) turns.push_back({Pass::backward, i});
    return turns;
  }
  const std::int64_t warm_up = warm_up_of(p, stage);
  for (std::int64_t k = 0; k < warm_up; ++k) turns.push_back(turn_of(p, Pass::forward, k));
  for (std::int64_t k = warm_up; k < all; ++k) {
    turns.push_back(turn_of(p, Pass::forward, k));
    turns.push_back(turn_of(p, Pass::backward, k - warm_up));
  }
  for (std::int64_t k = all - warm_up; k < all; ++k) turns.push_back(turn_of(p, Pass::backward, k));
  return turns;
}

AlikeTurns alike_turns(const std::vector<Turn>& turns, const PipelineShape& p, std::size_t first) {
  AlikeTurns best;
  const auto round = static_cast<std::size_t>(group_of(p) * p.chunks);
  std::vector<std::size_t> periods{1, 2};  // of GPipe's passes, of 1F1B
  if (p.chunks > 1) periods = {round, 2 * round};
  for (const std::size_t period : periods) {
    std::size_t end = first;  // turns before it are like those a period later
    while (end + period < turns.size() && turns[end].pass == turns[end + period].pass &&
           turns[end].chunk == turns[end + period].chunk)
      ++end;
    // A writer looks a turn or two ahead, and does other things in a chunk's last backward, which
    // is among the last period: that and two turns more are left out.
    const std::size_t blocks = end > first + 2 ? (end - 2 - first) / period : 0;
    if (blocks * period > best.blocks * best.period) best = {period, blocks};
  }
  return best;
}

std::int64_t peak_in_flight(const PipelineShape& p, std::int64_t stage,
                            const std::vector<std::int64_t>& weight_of_chunk) {
  std::int64_t alive = 0, peak = 0;
  for (const Turn& turn : turns_of_stage(p, stage)) {
    const std::int64_t weight = weight_of_chunk.at(static_cast<std::size_t>(turn.chunk));
    alive += turn.pass == Pass::forward ? weight : -weight;
    peak = std::max(peak, alive);
  }
  return peak;
}

}  // namespace stepcast::workloads
