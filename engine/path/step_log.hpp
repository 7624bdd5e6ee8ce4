// When every call of a run had passed, step after step, and what decided it: each instant is the
// latest of a few others plus a duration, so that the program and the instants tell the rest.
// Belongs to one System without jitter, which it borrows.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "engine/path/step_calls.hpp"
#include "engine/run.hpp"
#include "engine/system.hpp"
#include "engine/timeline.hpp"

namespace stepcast::engine {

/// A call of a lane: `number` counts the lane's calls from the first step's begin on.
struct LaneCall {
  std::uint32_t rank = 0;
  std::uint8_t lane = 0;
  std::int64_t number = 0;
  friend auto operator<=>(const LaneCall&, const LaneCall&) = default;
};

/// The state beside a kernel from an instant on.
struct Beside {
  Time from;
  std::uint32_t state = 0;
};

class StepLog final : public TimelineSink {
 public:
  StepLog(const System& system, bool cold);

  void start() override;
  void work(std::uint32_t, std::uint8_t, std::uint32_t, Time, Time) override {}
  void transfer(std::uint32_t, std::uint8_t, std::uint32_t, Time, Time, Time) override {}
  void passed(std::uint32_t rank, std::uint8_t lane, Time clock) override;
  void host(std::uint32_t rank, Time when) override;
  void beside(std::uint32_t rank, Time when, std::uint32_t state) override;

  const System& system() const { return system_; }
  const StepCalls& calls_of(std::uint32_t rank) const { return roles_[system_.role_of_rank[rank]]; }
  const StepCall& call(const LaneCall& c) const { return calls_of(c.rank).calls[index(c)]; }
  /// In StepCalls::calls.
  std::uint32_t index(const LaneCall& c) const;
  std::int64_t step_of(const LaneCall& c) const { return c.number / calls_in_step(c); }
  std::int64_t calls_in_step(const LaneCall& c) const {
    return static_cast<std::int64_t>(calls_of(c.rank).lanes[c.lane].size());
  }

  /// False before the run's begin, where every lane stands at Time{}.
  bool in_run(const LaneCall& c) const;
  bool was_run(const LaneCall& c) const;
  Time clock(const LaneCall& c) const;
  /// The lane's first call that passes later than `when`.
  LaneCall first_after(std::uint32_t rank, std::uint8_t lane, Time when) const;
  Time clock_before(LaneCall c) const { return --c.number, clock(c); }
  /// Host epochs count from the first step's begin on as well.
  bool epoch_in_run(std::uint32_t rank, std::int64_t epoch) const;
  /// That in which a steady run enters, behind the mark, with all of it launched.
  bool is_entry_epoch(std::uint32_t rank, std::int64_t epoch) const;
  Time epoch_begin(std::uint32_t rank, std::int64_t epoch) const;
  std::int64_t epoch_of(const LaneCall& c) const;
  Time launch(const LaneCall& c) const;
  /// When the call could begin: its lane free, and launched.
  Time ready(const LaneCall& c) const { return std::max(clock_before(c), launch(c)); }
  /// The call that records what `c`, a wait, waits for.
  LaneCall recorder(const LaneCall& c) const;
  LaneCall recorder(std::uint32_t rank, std::uint32_t event, std::int64_t step) const;
  /// What ran beside a kernel of the compute lane; empty: nothing, throughout.
  std::span<const Beside> beside_of(const LaneCall& c) const;

  // Transfers: `turn` counts those of a communicator from the first step's begin on.

  std::uint32_t communicator_of(const LaneCall& join) const;
  std::int64_t turn_of(const LaneCall& join) const;
  /// The call with which a member takes part in it.
  LaneCall join_of(std::uint32_t rank, std::uint32_t communicator, std::int64_t turn) const;
  const Transfer& transfer_of(const LaneCall& join) const;
  /// When the last member had come.
  Time started(std::uint32_t communicator, std::int64_t turn) const;
  /// Of the run's turns the first, and one past the last that ended.
  std::int64_t first_turn(std::uint32_t communicator) const;
  std::int64_t turns_in_run(std::uint32_t communicator) const;

  std::int64_t last_step() const { return last_step_; }
  void ended_with(const RunResult& result) { last_step_ = result.steps - 1; }
  /// The rank that ends `step` last, and when; before the first boundary: nobody, at Time{}.
  struct Boundary {
    Time when{};
    std::vector<LaneCall> last;  // all that end it; empty: the run's begin
  };
  Boundary boundary(std::int64_t step) const;

 private:
  /// Of a member of a communicator: the calls of a step that join it, all on one lane, if any.
  struct Joins {
    std::uint8_t lane = 0;
    std::vector<std::uint32_t> places;  // ascending
  };
  const Joins& joins_of(std::uint32_t rank, std::uint32_t communicator) const;
  const std::vector<Time>& times(const LaneCall& c) const { return lanes_[c.rank][c.lane]; }
  std::int64_t first(const LaneCall& c) const;

  const System& system_;
  const bool cold_;
  std::vector<StepCalls> roles_;
  std::vector<std::vector<std::vector<Time>>> lanes_;  // [rank][lane]
  std::vector<std::vector<Time>> epochs_;              // [rank]
  std::vector<std::vector<Beside>> pending_;           // [rank]: of the kernel under way
  std::map<LaneCall, std::vector<Beside>> besides_;
  mutable std::map<std::pair<std::uint32_t, std::uint32_t>, Joins> joins_;
  std::int64_t last_step_ = 0;
};

}  // namespace stepcast::engine
