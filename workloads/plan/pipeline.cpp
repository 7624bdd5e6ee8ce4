#include "workloads/plan/pipeline.hpp"

#include <algorithm>
#include <initializer_list>

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

namespace {

/// The period of these in which turns from `first` on are `same` longest.
template <class Same>
AlikeTurns longest(const std::vector<Turn>& turns, std::initializer_list<std::size_t> periods,
                   std::size_t first, Same&& same) {
  AlikeTurns best;
  for (const std::size_t period : periods) {
    std::size_t end = first;  // turns before it are like those a period later
    while (end + period < turns.size() && turns[end].pass == turns[end + period].pass &&
           same(turns[end], turns[end + period]))
      ++end;
    // A writer looks a turn or two ahead, and does other things in a chunk's last backward, which
    // is among the last period: that and two turns more are left out.
    const std::size_t blocks = end > first + 2 ? (end - 2 - first) / period : 0;
    if (blocks * period > best.blocks * best.period) best = {period, blocks};
  }
  return best;
}

}  // namespace

AlikeTurns alike_turns(const std::vector<Turn>& turns, const PipelineShape& p, std::size_t first) {
  const auto same_chunk = [](const Turn& a, const Turn& b) { return a.chunk == b.chunk; };
  if (p.chunks == 1) return longest(turns, {1, 2}, first, same_chunk);  // GPipe's passes, 1F1B
  const auto round = static_cast<std::size_t>(group_of(p) * p.chunks);
  return longest(turns, {round, 2 * round}, first, same_chunk);
}

AlikeTurns alike_turns_of(const std::vector<bool>& chunks, const std::vector<Turn>& turns,
                          const PipelineShape& p, std::size_t first) {
  const auto plain = [&](const Turn& turn) {
    return chunks[static_cast<std::size_t>(turn.chunk)] && turn.micro_batch > 0 &&
           turn.micro_batch + 1 < p.micro_batches;
  };
  return longest(turns, {1, 2}, first,
                 [&](const Turn& a, const Turn& b) { return plain(a) && plain(b); });
}

/// Most are held after a forward. Once forwards and backwards alternate, every round takes as much
/// away as it brings: the first shows all.
std::int64_t peak_in_flight(const PipelineShape& p, std::int64_t stage,
                            const std::vector<std::int64_t>& weight_of_chunk) {
  const std::int64_t all = p.micro_batches * p.chunks;
  if (p.schedule == Schedule::gpipe) return all * weight_of_chunk.at(0);
  const auto weight_of = [&](Pass pass, std::int64_t k) {
    return weight_of_chunk.at(static_cast<std::size_t>(turn_of(p, pass, k).chunk));
  };
  const std::int64_t warm_up = warm_up_of(p, stage);
  const std::int64_t round = p.chunks == 1 ? 1 : group_of(p) * p.chunks;
  std::int64_t alive = 0, peak = 0;
  for (std::int64_t k = 0; k < std::min(all, warm_up + round); ++k) {
    alive += weight_of(Pass::forward, k);
    peak = std::max(peak, alive);
    if (k >= warm_up) alive -= weight_of(Pass::backward, k - warm_up);
  }
  return peak;
}

}  // namespace stepcast::workloads
