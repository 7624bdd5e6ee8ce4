#include <algorithm>
#include <map>
#include <optional>

#include "sim/timeline/counters.hpp"
#include "workloads/memory/figures.hpp"
#include "workloads/memory/replay.hpp"
#include "workloads/step/turn_starts.hpp"

namespace stepcast::sim {
namespace {

using workloads::Turn;

constexpr std::size_t most_parts = 16;  // of a turn

/// The allocated bytes after each allocation of the second step, by the replay's turns; the last
/// is the update.
struct Replayed {
  std::vector<std::optional<Turn>> turns;
  std::vector<std::vector<std::int64_t>> allocated;
};

Replayed replayed(const workloads::StepInputs& in, std::int64_t stage) {
  const workloads::StepAllocations steps = workloads::step_allocations(in, stage);
  Replayed out;
  std::size_t next = 0;
  workloads::replay(steps, [&](std::size_t i, const workloads::CachingAllocator& allocator) {
    for (; next < steps.turns.size() && steps.turns[next].first <= i; ++next) {
      if (steps.turns[next].step != 1) continue;
      out.turns.push_back(steps.turns[next].turn);
      out.allocated.emplace_back();
    }
    if (!out.allocated.empty()) out.allocated.back().push_back(allocator.allocated());
  });
  return out;
}

/// Which of the replay's turns shows turn `i` of `turns`: the same from the begin or from the end,
/// in the middle one of the same pass and chunk.
std::size_t place_of(std::size_t i, const std::vector<Turn>& turns, const Replayed& replay) {
  const std::size_t shown = replay.turns.size() - 1, all = turns.size();
  if (i >= all) return shown;  // the update
  const auto alike = [&](std::size_t j) {
    return replay.turns[j] && replay.turns[j]->pass == turns[i].pass &&
           replay.turns[j]->chunk == turns[i].chunk;
  };
  const std::size_t half = shown / 2;
  if (i < half && alike(i)) return i;
  if (i + shown >= all + half && alike(i + shown - all)) return i + shown - all;
  for (std::size_t back = 0; back < shown; ++back) {
    if (half >= back && half - back < shown && alike(half - back)) return half - back;
    if (half + back < shown && alike(half + back)) return half + back;
  }
  return std::min(i, shown - 1);
}

/// The most that each part holds, over [from, to).
void spread(const std::vector<std::int64_t>& allocated, Duration from, Duration to,
            TimelineCounter& counter) {
  const std::size_t parts = std::min(most_parts, allocated.size());
  for (std::size_t part = 0; part < parts; ++part) {
    const auto begin =
        allocated.begin() + static_cast<std::ptrdiff_t>(part * allocated.size() / parts);
    const auto end =
        allocated.begin() + static_cast<std::ptrdiff_t>((part + 1) * allocated.size() / parts);
    const double gib = static_cast<double>(*std::max_element(begin, end)) / (1 << 30);
    const Duration at =
        from + (to - from) * static_cast<std::int64_t>(part) / static_cast<std::int64_t>(parts);
    if (counter.values.empty() || counter.values.back().second != gib)
      counter.values.emplace_back(at, gib);
  }
}

/// When the compute lane of a rank starts each of its kernels, and last the end of all.
std::vector<Duration> starts_of(const Timeline& timeline, std::int64_t rank) {
  std::vector<Duration> out;
  Duration end{};
  for (const TimelineEvent& e : timeline.events) {
    if (e.rank != rank || e.lane != workloads::compute || e.is_collective()) continue;
    out.push_back(e.start);
    end = std::max(end, e.start + e.duration);
  }
  out.push_back(end);
  return out;
}

}  // namespace

void add_memory(Timeline& timeline, const Scenario& s) {
  if (workloads::allocates_once(s.plan, s.software)) return;
  const workloads::StepInputs in{s.model, s.plan, s.batch, s.precision, s.software};
  std::map<std::int64_t, std::pair<Replayed, workloads::TurnStarts>> stages;
  for (const auto& [rank, alike] : timeline.ranks) {
    const std::int64_t stage = workloads::coordinates_of(s.plan, rank).pipeline;
    if (!stages.contains(stage))
      stages.emplace(stage, std::pair(replayed(in, stage), workloads::turn_starts(in, stage)));
    const auto& [replay, starts] = stages.at(stage);
    const std::vector<Duration> kernels = starts_of(timeline, rank);
    if (replay.turns.empty() || starts.kernels_before.back() >= kernels.size()) continue;
    TimelineCounter counter{rank, "memory allocated", "GiB"};
    for (std::size_t i = 0; i <= starts.turns.size(); ++i) {
      const bool update = i == starts.turns.size();
      const Duration from = kernels[starts.kernels_before[i]];
      const Duration to = update ? kernels.back() : kernels[starts.kernels_before[i + 1]];
      if (to > from) spread(replay.allocated[place_of(i, starts.turns, replay)], from, to, counter);
    }
    timeline.counters.push_back(std::move(counter));
  }
}

}  // namespace stepcast::sim
