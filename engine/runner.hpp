// The state of one run(): lanes of every rank, groups that gather, the ordered queue and the fluid
// layer, each a value of its own (rank_state.hpp, lanes.hpp, meetings.hpp, event_table.hpp,
// time_queue.hpp, fluid.hpp). Split over six files: run.cpp (the event loop and transfers),
// rank_layer.cpp (lanes, host, events), compute_lane.cpp (segments, interference, where the time
// went), own_segments.cpp (ranks that differ kernel by kernel), turns.cpp (turns of a repeat that
// are like those before) and run_result.cpp. Private to engine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/event_table.hpp"
#include "engine/fluid.hpp"
#include "engine/lanes.hpp"
#include "engine/meetings.hpp"
#include "engine/photograph.hpp"
#include "engine/rank_state.hpp"
#include "engine/run.hpp"
#include "engine/system.hpp"
#include "engine/time_queue.hpp"

namespace stepcast::engine {

// Queue entries carry a rank (a compute lane to look at, or one that enters a turn) or a
// communicator (a transfer to start).
inline constexpr std::uint32_t transfer_bit = std::uint32_t{1} << 31;
inline constexpr std::uint32_t turn_bit = std::uint32_t{1} << 30;

/// A duration and the factor drawn for it: to the nearest picosecond.
inline Duration varied(Duration d, double factor) {
  return Duration(static_cast<std::int64_t>(static_cast<double>(d.count()) * factor + 0.5));
}

class Runner {
 public:
  Runner(const System& system, const RunOptions& options, std::uint32_t steps,
         TimelineSink* timeline = nullptr);
  RunResult run();

 private:
  // run.cpp: the event loop and transfers.
  void prepare_ranks();
  void enter_after_mark(std::uint32_t rank);
  void begin_timeline();
  void loop();
  void drain();
  void process(const TimeQueue::Entry& entry);
  bool join(std::uint32_t rank, std::uint8_t lane, const LaneInstruction& i);
  void arrive(std::uint32_t c, Member member, std::uint32_t transfer, Time when);
  void pass_beside(std::uint32_t c, Member member, std::uint32_t transfer, Time when);
  void resolve(std::uint32_t communicator);
  void start(std::uint32_t communicator, Time now);
  void complete(std::uint32_t communicator, Time started, Time ended);
  void list(std::uint32_t rank);
  void mark_dirty(std::uint32_t rank);
  RunResult result();
  RunResult mean_of_measured(RunResult out) const;
  bool steps_end_alike() const;
  [[noreturn]] void throw_stalled() const;

  // turns.cpp: turns of a repeat that are like those before.
  void prepare_turns();
  void skip_turns();
  bool in_repeat(std::uint32_t rank, std::uint8_t lane) const;
  std::pair<std::uint32_t, std::uint32_t> turns_of(std::uint32_t rank) const;
  bool photograph(Photograph& p) const;
  bool add_rank(Photograph& p, std::uint32_t rank) const;
  bool add_host(Photograph& p, std::uint32_t rank, std::uint32_t low) const;
  bool add_lane(Photograph& p, std::uint32_t rank, std::uint8_t lane) const;
  void add_flight(Photograph& p, std::uint32_t rank) const;
  void add_transfers(Photograph& p) const;
  std::int64_t alike_periods(const Photograph& before, const Photograph& now) const;
  void skip(const Photograph& before, const Photograph& now, std::int64_t periods);
  void skip_events(std::uint32_t rank, std::uint32_t turns, Duration time);
  void skip_rank(std::uint32_t rank, std::uint32_t turns, Duration time);

  // rank_layer.cpp: lanes, host thread, events.
  void run_rank(std::uint32_t rank);
  void run_lane(std::uint32_t rank, std::uint8_t lane);
  bool wait(std::uint32_t rank, std::uint8_t lane, std::uint32_t event);
  bool next_turn(std::uint32_t rank, std::uint8_t lane);
  void enter(std::uint32_t rank, std::uint8_t lane, std::uint32_t stretch);
  bool wrap(std::uint32_t rank, std::uint8_t lane);
  const HostWait* next_host_wait(std::uint32_t rank);
  /// Of the turns before the host's: what its host_waits do not say.
  std::uint32_t host_events(std::uint32_t rank) const {
    const HostPlace& place = ranks_[rank].host_place;
    return place.turn * role_of(rank).stretches[place.stretch].events;
  }
  void record_wrap(std::uint32_t rank, std::size_t lane, std::uint32_t step, Time when);
  std::optional<Time> all_lanes_in(std::uint32_t rank, std::uint32_t step) const;
  void set_event(std::uint32_t rank, std::uint32_t event, std::uint32_t step, Time when);
  const HostWait* note_host_event(std::uint32_t rank);
  static bool launched(const RankState& state, std::uint32_t step, std::uint32_t epoch) {
    return step < state.host_step || (step == state.host_step && epoch <= state.host_epoch);
  }
  static Time launch_time(const RankState& state, const LaneState& lane, const LaneInstruction& i) {
    const std::uint32_t of_step = (lane.step & 1U) * state.role->num_epochs;
    return state.epoch_starts[of_step + i.epoch + lane.epochs] + i.launch + lane.launch;
  }
  /// The later of the two; notes where that is the launch.
  static Time launched_at_least(RankState& state, Time ready, Time launch) {
    if (launch <= ready) return ready;
    ++state.launches_late;
    return launch;
  }
  void advance_host(std::uint32_t rank);
  void tell_host(std::uint32_t rank);
  void pass(std::uint32_t rank, std::uint8_t lane) {
    ++lane_of(rank, lane).pc;
    if (timeline_ != nullptr) timeline_->passed(rank, lane, lane_of(rank, lane).clock);
  }
  void side_segment(std::uint32_t rank, std::uint8_t lane, const LaneInstruction& i);

  // compute_lane.cpp: segments, interference, accounts.
  bool compute_segment(std::uint32_t rank, const LaneInstruction& i);
  bool fly(std::uint32_t rank);  // true when the segment has ended
  void advance(std::uint32_t rank, Time now);
  static void pass_kernels(Flight& flight, SegmentMap map, Time now);
  void set_state(std::uint32_t rank, Time when);
  void predict(std::uint32_t rank);
  std::uint32_t look_beside(std::uint32_t rank);
  Time next_surprise(std::uint32_t rank) const;
  void finish_flight(std::uint32_t rank);
  void refresh(std::uint32_t rank, Time now);
  void account_gap(std::uint32_t rank, std::uint8_t lane, Time from, Time to);
  void cross_boundary(std::uint32_t rank, Time now);

  // own_segments.cpp: ranks that differ kernel by kernel (jitter, a speed of its own each).
  void prepare_own_segments();
  bool has_own_segments() const { return !factors_.empty(); }
  void draw_factors(std::uint32_t rank, std::uint8_t lane, std::size_t kernels,
                    std::vector<double>& factors);
  Time run_own_segment(std::uint32_t rank, std::span<const SegmentKernel> kernels, SegmentMap map,
                       Time clock, Time host);
  void predict_own(std::uint32_t rank, SegmentMap map);
  /// Durations of the flight's segment in its state, before a rank's own factors.
  SegmentMap flight_map(std::uint32_t rank) {
    const Flight& flight = ranks_[rank].flight;
    return compiled_.map(flight.segment, flight.state, ranks_[rank].speed);
  }
  Duration duration_of(std::uint32_t rank, SegmentMap map, std::uint32_t kernel) const {
    return has_own_segments() ? varied(map[kernel].duration, factors_[rank][kernel])
                              : map[kernel].duration;
  }

  LaneState& lane_of(std::uint32_t rank, std::uint8_t lane) {
    return lanes_[rank * num_lanes_ + lane];
  }
  const LaneState& lane_of(std::uint32_t rank, std::uint8_t lane) const {
    return lanes_[rank * num_lanes_ + lane];
  }
  Membership& membership_of(std::uint32_t rank, std::uint8_t lane) {
    return memberships_[rank * num_lanes_ + lane];
  }
  const Membership& membership_of(std::uint32_t rank, std::uint8_t lane) const {
    return memberships_[rank * num_lanes_ + lane];
  }
  void remember(std::uint32_t rank, const Past& past);
  const RoleLanes& role_of(std::uint32_t rank) const { return *ranks_[rank].role; }

  const System& system_;
  const RunOptions options_;
  const std::uint32_t last_step_;  // lanes stop at its end
  TimelineSink* const timeline_;   // null: nobody looks
  Lanes compiled_;
  Fluid fluid_;
  TimeQueue queue_;
  Time now_{};

  std::size_t num_lanes_ = 1;  // that a rank has room for
  std::vector<RankState> ranks_;
  std::vector<LaneState> lanes_;
  std::vector<Membership> memberships_;
  EventTable events_;
  std::vector<Time> epoch_starts_;  // of all ranks

  Meetings meetings_;
  JitterSource jitter_;
  // On the durations of the segment under way, by rank; empty: segments are the same for all.
  std::vector<std::vector<double>> factors_;
  std::vector<double> passing_factors_;  // of a segment that is run at once
  std::vector<std::uint64_t> drawn_;     // per rank and lane: kernels so far

  std::vector<std::uint32_t> worklist_;
  std::size_t work_head_ = 0;
  std::vector<std::uint32_t> dirty_;
  std::vector<std::uint64_t> ended_;
  std::vector<TimeQueue::Entry> due_;

  std::vector<Photograph> photographs_;  // of the turns before, the last ones; see turns.cpp
  bool may_skip_ = false;
  std::array<std::uint32_t, 3> looked_at_turn_{};  // rank 0's step, stretch and turn

  // Per step: the state of every rank at the end of its program, relative to the step's boundary.
  std::vector<std::vector<Duration>> wraps_;
  std::vector<std::vector<Time>> boundaries_;  // [step][rank]
  RunResult counters_;
};

}  // namespace stepcast::engine
