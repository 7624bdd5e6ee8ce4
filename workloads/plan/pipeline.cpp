#include "workloads/plan/pipeline.hpp"

#include <algorithm>
#include <initializer_list>

#include "engine/check.hpp"
#include "workloads/plan/folded_orders.hpp"

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
  return {pass, k / round * group + k % group, pass == Pass::forward ? chunk : p.chunks - 1 - chunk,
          false};
}

std::int64_t warm_up_of(const PipelineShape& p, std::int64_t stage) {
  const std::int64_t after = p.stages - 1 - stage, more = p.paired ? 1 : 0;
  if (p.chunks == 1) return std::min(after + more, p.micro_batches);
  return std::min(2 * after + (p.chunks - 1) * group_of(p) + more, p.micro_batches * p.chunks);
}

std::vector<Turn> gpipe_turns(const PipelineShape& p) {
  expects(p.chunks == 1, "GPipe without chunks");
  std::vector<Turn> turns;
  for (std::int64_t i = 0; i < p.micro_batches; ++i) turns.push_back({Pass::forward, i});
  for (std::int64_t i = p.micro_batches; i-- > 0;) turns.push_back({Pass::backward, i});
  return turns;
}

std::vector<Turn> one_f_one_b_turns(const PipelineShape& p, std::int64_t stage) {
  const std::int64_t all = p.micro_batches * p.chunks;
  const std::int64_t warm_up = warm_up_of(p, stage);
  std::vector<Turn> turns;
  turns.reserve(static_cast<std::size_t>(2 * all));
  for (std::int64_t k = 0; k < warm_up; ++k) turns.push_back(turn_of(p, Pass::forward, k));
  for (std::int64_t k = warm_up; k < all; ++k) {
    turns.push_back(turn_of(p, Pass::forward, k));
    turns.back().paired = p.paired;
    turns.push_back(turn_of(p, Pass::backward, k - warm_up));
  }
  for (std::int64_t k = all - warm_up; k < all; ++k) turns.push_back(turn_of(p, Pass::backward, k));
  return turns;
}

/// After `warm_up` forwards input gradients and forwards in turn, each input gradient followed by
/// the weight gradients that are `late` turns behind it.
std::vector<Turn> zero_bubble_turns(const PipelineShape& p, std::int64_t warm_up,
                                    std::int64_t late) {
  const std::int64_t all = p.micro_batches * p.chunks;
  std::vector<Turn> turns;
  turns.reserve(static_cast<std::size_t>(3 * all));
  for (std::int64_t k = 0; k < warm_up; ++k) turns.push_back(turn_of(p, Pass::forward, k));
  for (std::int64_t k = 0; k < all; ++k) {
    if (warm_up + k < all) turns.push_back(turn_of(p, Pass::forward, warm_up + k));
    turns.push_back(turn_of(p, Pass::input_gradient, k));
    if (k >= late) turns.push_back(turn_of(p, Pass::weight_gradient, k - late));
  }
  for (std::int64_t k = std::max<std::int64_t>(0, all - late); k < all; ++k)
    turns.push_back(turn_of(p, Pass::weight_gradient, k));
  return turns;
}

}  // namespace

PipelineShape pipeline_shape(const ParallelPlan& plan, const Batch& batch) {
  return {plan.schedule,       plan.pipeline,       batch.micro_batches,
          plan.virtual_stages, plan.expert.overlap, plan.orders};
}

std::vector<Turn> turns_of_stage(const PipelineShape& p, std::int64_t stage) {
  expects(stage >= 0 && stage < p.stages && p.micro_batches > 0, "a stage of the pipeline");
  const std::int64_t after = p.stages - 1 - stage;
  switch (p.schedule) {
    case Schedule::gpipe:
      return gpipe_turns(p);
    case Schedule::one_f_one_b:
      return one_f_one_b_turns(p, stage);
    case Schedule::zb_h1: {
      const std::int64_t chunks_before = p.chunks == 1 ? 0 : (p.chunks - 1) * group_of(p);
      const std::int64_t warm_up = std::min(after + chunks_before, p.micro_batches * p.chunks);
      return zero_bubble_turns(p, warm_up, stage);
    }
    case Schedule::zb_h2:
      expects(p.chunks == 1, "ZB-H2 without chunks");
      // The forward that ends the warm-up is the first of those in turn with input gradients.
      return zero_bubble_turns(p, std::min(2 * after, p.micro_batches), 2 * stage);
    case Schedule::zb_v:
      return zb_v_turns(p.stages, p.micro_batches, stage);
    case Schedule::dualpipe:
      return dualpipe_turns(p.stages, p.micro_batches, stage);
    case Schedule::dualpipe_v:
      return dualpipe_v_turns(p.stages, p.micro_batches, stage);
    case Schedule::listed:
      return p.orders.list->stages.at(static_cast<std::size_t>(stage));
  }
  throw BrokenPromise("unknown schedule");
}

bool parts_backward(const std::vector<Turn>& turns) {
  return std::ranges::any_of(turns, [](const Turn& t) { return t.pass == Pass::weight_gradient; });
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

bool repeats_itself(const PipelineShape& p) {
  switch (p.schedule) {
    case Schedule::gpipe:
      return true;
    case Schedule::one_f_one_b:
      return !p.paired;
    case Schedule::zb_h1:
    case Schedule::zb_h2:
      return p.chunks == 1;
    default:
      return false;
  }
}

AlikeTurns alike_turns(const std::vector<Turn>& turns, const PipelineShape& p, std::size_t first) {
  if (!repeats_itself(p)) return {};
  const auto same_chunk = [](const Turn& a, const Turn& b) { return a.chunk == b.chunk; };
  // GPipe's passes, 1F1B, ZB-H1 and ZB-H2.
  if (p.chunks == 1) return longest(turns, {1, 2, 3}, first, same_chunk);
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

namespace {

/// Of any order, turn by turn.
std::int64_t peak_of_turns(const std::vector<Turn>& turns, const std::vector<std::int64_t>& weights,
                           const std::vector<std::int64_t>& more) {
  std::int64_t alive = 0, peak = 0;
  for (const Turn& turn : turns) {
    const auto chunk = static_cast<std::size_t>(turn.chunk);
    const std::int64_t until_weights = more.empty() ? 0 : more.at(chunk);
    if (turn.pass == Pass::forward) alive += weights.at(chunk);
    if (turn.pass == Pass::input_gradient) alive += until_weights;
    peak = std::max(peak, alive);
    if (turn.pass == Pass::backward) alive -= weights.at(chunk);
    if (turn.pass == Pass::weight_gradient) alive -= weights.at(chunk) + until_weights;
  }
  return peak;
}

/// 1F1B's most are held after a forward. Once forwards and backwards alternate, every round takes
/// as much away as it brings: the first shows all.
std::int64_t peak_of_first_round(const PipelineShape& p, std::int64_t stage,
                                 const std::vector<std::int64_t>& weights) {
  const std::int64_t all = p.micro_batches * p.chunks;
  const auto weight_of = [&](Pass pass, std::int64_t k) {
    return weights.at(static_cast<std::size_t>(turn_of(p, pass, k).chunk));
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

}  // namespace

std::int64_t peak_in_flight(const PipelineShape& p, std::int64_t stage,
                            const std::vector<std::int64_t>& weight_of_chunk,
                            const std::vector<std::int64_t>& more_until_weights) {
  if (p.schedule == Schedule::gpipe) return p.micro_batches * p.chunks * weight_of_chunk.at(0);
  if (p.schedule == Schedule::one_f_one_b) return peak_of_first_round(p, stage, weight_of_chunk);
  return peak_of_turns(turns_of_stage(p, stage), weight_of_chunk, more_until_weights);
}

}  // namespace stepcast::workloads
