// Which ranks of a run its timeline records, and as whom it shows them: of ranks that are provably
// alike one stands for all; where every rank is simulated, those that were asked for alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/fold.hpp"
#include "engine/system.hpp"
#include "sim/run/step_system.hpp"
#include "sim/run/timeline.hpp"

namespace stepcast::sim {

/// Who receives what a rank of `shown` sends to the next or the previous stage, by rank and lane.
/// Where that rank is not shown, one that does as it does; where there is none, nobody.
std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> receivers_among(
    const std::map<std::int64_t, std::int64_t>& shown, const engine::System& whole,
    const std::vector<std::uint32_t>& likeness);

/// Throws InputError where a rank is not one of `num_ranks`.
void check_ranks(const RankChoice& choice, std::uint32_t num_ranks);

class RecordedRanks {
 public:
  /// What is given outlives it. `step` is still without noise: it tells which ranks are alike.
  RecordedRanks(const workloads::StepProgram& program, const StepSystem& step, Timeline& timeline,
                TimelineApproval approval);

  bool asks_for_slowest() const {
    return timeline_.asked.kind == RankChoice::Kind::representatives;
  }
  void know_slowest(const engine::RunResult& result);
  /// Records a run of every rank.
  engine::TimelineSink* of_all();
  /// Records a run of a fold, whose ranks name() then calls by those of the whole.
  engine::TimelineSink* of_folded(const engine::Fold& fold);
  void name(const engine::Fold& fold, const engine::RunResult& result);

 private:
  std::vector<std::int64_t> representatives() const;
  void approve(const std::vector<std::int64_t>& shown) const;

  const workloads::StepProgram& program_;
  const StepSystem& step_;
  Timeline& timeline_;
  TimelineApproval approval_;
  std::vector<std::uint32_t> likeness_;  // by rank: its class
  TimelineRecorder recorder_;
};

}  // namespace stepcast::sim
