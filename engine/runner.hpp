// The state of one run(): lanes of every rank, groups that gather, the ordered queue and the fluid
// layer. Split over six files: run.cpp (the event loop and transfers), rank_layer.cpp (lanes,
// host, events), compute_lane.cpp (segments, interference, where the time went), own_segments.cpp
// (ranks that differ kernel by kernel), turns.cpp (turns of a repeat that are like those before)
// and run_result.cpp. Private to engine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/fluid.hpp"
#include "engine/lanes.hpp"
#include "engine/run.hpp"
#include "engine/system.hpp"
#include "engine/time_queue.hpp"

namespace stepcast::engine {

inline constexpr Time never = Time::max();
inline constexpr std::size_t max_lanes = 12;

// Queue entries carry a rank (a compute lane to look at, or one that enters a turn) or a
// communicator (a transfer to start).
inline constexpr std::uint32_t transfer_bit = std::uint32_t{1} << 31;
inline constexpr std::uint32_t turn_bit = std::uint32_t{1} << 30;

using LaneSet = std::uint16_t;  // a bit for each lane

/// Why a lane does not go on.
enum class Block : std::uint8_t { none, event, host, transfer, flight, turn, stop };

struct LaneState {
  Time clock{};
  std::array<Time, 2> entered{};  // its step and the one before, by the parity of the step
  std::uint32_t pc = 0;
  std::uint32_t end = 0;  // of its stretch
  std::uint32_t stretch = 0, turn = 0;
  std::uint32_t events = 0, epochs = 0;  // of the turns before: what its instructions do not say
  Duration launch{};
  std::uint32_t step = 0;
  std::uint32_t event = 0;  // awaited, when blocked on one
  Block block = Block::none;
};

/// The host thread's next host_wait.
struct HostPlace {
  std::uint32_t wait = 0, stretch = 0, turn = 0;
  friend bool operator==(const HostPlace&, const HostPlace&) = default;
};

/// A transfer that a lane has joined and that has not ended.
struct Membership {
  Time arrived{};
  Time started = never;
  bool active = false;
  std::uint8_t interference_class = 0;
};

/// A transfer or a piece of side work that a lane has behind it: explains idle compute lanes.
struct Past {
  Time arrived{}, started{}, ended{};
  std::uint8_t traffic = 0;  // num_traffic: side work
  std::uint8_t lane = 0;
};

/// The compute lane's segment under way, when it cannot run ahead: `kernel` has `remaining` to go
/// in `state`, as of `at`.
struct Flight {
  std::uint32_t segment = 0;
  std::uint32_t kernel = 0;
  std::uint32_t state = 0;
  std::uint32_t version = 0;
  Time begin{}, at{}, host{};
  Duration remaining{}, consumed{}, base{};
  bool whole = true;  // the kernel has not begun
  bool active = false;
};

/// A rank's own durations of the segment under way, where ranks differ kernel by kernel.
struct OwnSegment {
  std::vector<double> factors;
  SegmentMap map;
};

/// A duration and the factor drawn for it: to the nearest picosecond.
inline Duration varied(Duration d, double factor) {
  return Duration(static_cast<std::int64_t>(static_cast<double>(d.count()) * factor + 0.5));
}

/// What runs beside the compute lane and is known from its begin on: copies, and transfers that
/// depend on nobody else.
struct SideWork {
  Time from, to;
  std::uint8_t interference_class = side_work_class;
};

struct RankState {
  std::uint32_t role = 0;
  std::uint32_t speed = 0;
  LaneSet todo = 0;              // lanes to look at
  LaneSet waiting = 0;           // lanes blocked on an event
  std::uint8_t outstanding = 0;  // transfers joined from other lanes than compute, not ended
  bool listed = false;           // in the worklist
  bool dirty = false;            // interference may have changed at this instant
  std::uint32_t host_step = 0;   // the host thread's step and epoch
  std::uint32_t host_epoch = 0;
  HostPlace host_place;
  std::uint32_t launches_late = 0;  // times that a launch decided when something began
  Flight flight;
  std::vector<SideWork> side;
  std::vector<Past> past;  // what ended after the compute lane's clock, and some before
  Time boundary{};         // end of the last accounted step
  RankAccount account, last_account;
};

struct GroupState {
  std::uint32_t arrived = 0;
  std::uint32_t transfer = 0;
  Time latest{};
  Time started{};
};

struct Member {
  std::uint32_t rank = 0;
  std::uint8_t lane = 0;
};

/// All that the future of a run depends on, relative to an instant and to the turn of each rank:
/// two instants with the same photograph have the same future, as long as the turns last.
struct Photograph {
  Time now;
  std::uint32_t step = 0, stretch = 0;  // of rank 0's compute lane
  std::uint64_t first = 0, second = 0;  // a hash
  std::vector<std::uint32_t> turns{};   // by rank: of its compute lane
  std::vector<std::uint32_t> room{};    // by rank: turns that every lane has left
  std::vector<RankAccount> accounts{};  // by rank
  std::vector<Duration>
      hosts{};  // by rank: launches against `now`, where no epoch passes in a turn
  std::vector<std::uint32_t> launches_late{};  // by rank
  RunResult counters{};

  void add(std::uint64_t value);
  void add(Time time) { add(static_cast<std::uint64_t>((time - now).count())); }
  void add(Duration d) { add(static_cast<std::uint64_t>(d.count())); }
  bool alike(const Photograph& other) const {
    return first == other.first && second == other.second && step == other.step &&
           stretch == other.stretch;
  }
};

class Runner {
 public:
  Runner(const System& system, const RunOptions& options, std::uint32_t steps,
         TimelineSink* timeline = nullptr);
  RunResult run();

 private:
  // run.cpp: the event loop and transfers.
  void prepare_communicators();
  std::vector<std::vector<std::uint8_t>> lanes_of_slots() const;
  void prepare_slot(std::size_t slot, const std::vector<std::uint8_t>& lane_of_role);
  void prepare_run_ahead();
  void prepare_ranks();
  void loop();
  void drain();
  void process(const TimeQueue::Entry& entry);
  void arrive(std::uint32_t rank, std::uint8_t lane, const LaneInstruction& i, Time when);
  void pass_beside(std::uint32_t rank, std::uint8_t lane, const LaneInstruction& i, Time when);
  void resolve(std::uint32_t communicator);
  void start(std::uint32_t communicator, Time now);
  void complete(std::uint32_t communicator, Time started, Time ended);
  const Transfer& transfer_of(std::uint32_t communicator) const;
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
  bool step_lane(std::uint32_t rank, std::uint8_t lane, const LaneInstruction& i);
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
  bool event_set(std::uint32_t rank, std::uint32_t event, std::uint32_t step) const;
  Time event_time(std::uint32_t rank, std::uint32_t event, std::uint32_t step) const;
  /// Lanes of a rank are at most one step apart, so two places per event are enough; those of a
  /// step lie side by side.
  std::size_t event_index(std::uint32_t rank, std::uint32_t event, std::uint32_t step) const {
    return first_event_[rank] + (step & 1U) * std::size_t{role_of(rank).num_events} + event;
  }
  bool launched(std::uint32_t rank, std::uint32_t step, std::uint32_t epoch) const;
  Time launch_time(std::uint32_t rank, const LaneState& lane, const LaneInstruction& i) const;
  Time launched_at_least(std::uint32_t rank, Time ready, Time launch);
  void advance_host(std::uint32_t rank);
  void side_segment(std::uint32_t rank, std::uint8_t lane, const LaneInstruction& i);

  // compute_lane.cpp: segments, interference, accounts.
  bool compute_segment(std::uint32_t rank, const LaneInstruction& i);
  bool fly(std::uint32_t rank);  // true when the segment has ended
  void advance(std::uint32_t rank, Time now);
  void set_state(std::uint32_t rank, std::uint32_t state);
  Time predicted_end(std::uint32_t rank);
  std::uint32_t state_at(std::uint32_t rank, Time t) const;
  Time next_change(std::uint32_t rank, Time t) const;
  void finish_flight(std::uint32_t rank, Time end);
  void refresh(std::uint32_t rank, Time now);
  void account_gap(std::uint32_t rank, std::uint8_t lane, Time from, Time to);
  void cross_boundary(std::uint32_t rank, Time now);

  // own_segments.cpp: ranks that differ kernel by kernel (jitter, a speed of its own each).
  void prepare_own_segments();
  bool has_own_segments() const { return !own_.empty(); }
  void draw_factors(std::uint32_t rank, std::uint8_t lane, std::size_t kernels,
                    std::vector<double>& factors);
  Time run_own_segment(std::uint32_t rank, const std::vector<SegmentKernel>& kernels,
                       const SegmentMap& map, Time clock, Time host);
  const SegmentMap& own_map(std::uint32_t rank, std::uint32_t segment);
  void change_own_state(std::uint32_t rank, std::uint32_t from);
  /// Durations of the flight's segment in its state.
  const SegmentMap& flight_map(std::uint32_t rank) {
    const Flight& flight = ranks_[rank].flight;
    return has_own_segments() ? own_[rank].map
                              : compiled_.map(flight.segment, flight.state, ranks_[rank].speed);
  }

  LaneState& lane_of(std::uint32_t rank, std::uint8_t lane) {
    return lanes_[rank * max_lanes + lane];
  }
  const LaneState& lane_of(std::uint32_t rank, std::uint8_t lane) const {
    return lanes_[rank * max_lanes + lane];
  }
  Membership& membership_of(std::uint32_t rank, std::uint8_t lane) {
    return memberships_[rank * max_lanes + lane];
  }
  const Membership& membership_of(std::uint32_t rank, std::uint8_t lane) const {
    return memberships_[rank * max_lanes + lane];
  }
  void remember(std::uint32_t rank, const Past& past);
  const RoleLanes& role_of(std::uint32_t rank) const { return compiled_.role(ranks_[rank].role); }

  const System& system_;
  const RunOptions options_;
  const std::uint32_t last_step_;  // lanes stop at its end
  TimelineSink* const timeline_;   // null: nobody looks
  Lanes compiled_;
  Fluid fluid_;
  TimeQueue queue_;
  Time now_{};

  std::vector<RankState> ranks_;
  std::vector<LaneState> lanes_;
  std::vector<Membership> memberships_;
  std::vector<Time> event_times_;
  std::vector<std::uint32_t> event_steps_;  // step + 1 in which the event was last recorded
  std::vector<std::size_t> first_event_;    // per rank
  std::vector<Time> epoch_starts_;          // [first_epoch + parity of step * epochs + epoch]
  std::vector<std::size_t> first_epoch_;

  std::vector<GroupState> groups_;
  std::vector<Member> members_;
  std::vector<std::size_t> first_member_;
  std::vector<BytesPerSecond> alone_bound_;  // that the communicator's own links allow
  std::vector<bool> runs_ahead_;             // only compute lanes meet, on links of their own
  std::vector<bool> beside_;                 // one rank's other lane, on no link

  JitterSource jitter_;
  std::vector<OwnSegment> own_;       // per rank; empty: segments are the same for all
  std::vector<double> side_factors_;  // of the side work that is being run
  std::vector<std::uint64_t> drawn_;  // per rank and lane: kernels so far

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
