// Lanes of a rank: each runs until it meets something that is not known yet.
#include <algorithm>
#include <bit>

#include "engine/runner.hpp"

namespace stepcast::engine {

void Runner::run_rank(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  state.listed = false;
  // Highest lane first: what the other lanes take part in must be known before the compute lane
  // runs ahead.
  while (state.todo != 0) {
    const auto lane = static_cast<std::uint8_t>(std::bit_width(state.todo) - 1);
    state.todo = static_cast<LaneSet>(state.todo & ~(1U << lane));
    run_lane(rank, lane);
  }
}

void Runner::run_lane(std::uint32_t rank, std::uint8_t lane_index) {
  LaneState& lane = lane_of(rank, lane_index);
  const std::vector<LaneInstruction>& program = role_of(rank).lanes[lane_index];
  if (lane.block == Block::transfer || lane.block == Block::flight || lane.block == Block::turn ||
      lane.block == Block::stop)
    return;
  lane.block = Block::none;
  ranks_[rank].waiting &= static_cast<LaneSet>(~(1U << lane_index));
  while (true) {
    if (lane.pc == lane.end) {
      if (!next_turn(rank, lane_index)) return;
      continue;
    }
    const LaneInstruction& i = program[lane.pc];
    if (!launched(rank, lane.step, i.epoch + lane.epochs)) {
      advance_host(rank);
      if (!launched(rank, lane.step, i.epoch + lane.epochs)) {
        lane.block = Block::host;
        return;
      }
    }
    if (lane_index == compute_lane && ranks_[rank].todo != 0) {
      ranks_[rank].todo |= 1U;  // others first
      return;
    }
    if (!step_lane(rank, lane_index, i)) return;
  }
}

/// Executes one instruction; false when the lane is blocked in it.
bool Runner::step_lane(std::uint32_t rank, std::uint8_t lane_index, const LaneInstruction& i) {
  LaneState& lane = lane_of(rank, lane_index);
  switch (i.op) {
    case LaneOp::segment:
      if (lane_index != compute_lane)
        side_segment(rank, lane_index, i);
      else if (!compute_segment(rank, i))
        return false;
      break;
    case LaneOp::record:
      set_event(rank, i.arg + lane.events, lane.step,
                launched_at_least(rank, lane.clock, launch_time(rank, lane, i)));
      break;
    case LaneOp::wait: {
      const std::uint32_t event = i.arg + lane.events;
      if (!events_.is_set(rank, event, lane.step)) {
        lane.block = Block::event;
        lane.event = event;
        ranks_[rank].waiting |= static_cast<LaneSet>(1U << lane_index);
        return false;
      }
      const Time when = events_.time(rank, event, lane.step);
      if (when > lane.clock) {
        if (lane_index == compute_lane)
          account_gap(rank, role_of(rank).event_lane[event], lane.clock, when);
        lane.clock = when;
      }
      break;
    }
    case LaneOp::join:
      if (!join(rank, lane_index, i)) return false;
      break;
    case LaneOp::mark:
      if (!options_.cold) cross_boundary(rank, lane.clock);
      break;
  }
  pass(rank, lane_index);
  return true;
}

/// The lane has come to the end of its stretch: true when it goes on with the next turn of it, with
/// the next stretch, or with the next step. Where turns may be skipped, the compute lane enters a
/// turn when its time has come: ranks that run ahead would never be seen side by side.
bool Runner::next_turn(std::uint32_t rank, std::uint8_t lane_index) {
  LaneState& lane = lane_of(rank, lane_index);
  const RoleLanes& role = role_of(rank);
  const Stretch& stretch = role.stretches[lane.stretch];
  const std::uint32_t begin = role.begin(lane_index, lane.stretch);
  if (lane.turn + 1 == stretch.turns || begin == lane.end) {
    if (lane.stretch + 1 == role.stretches.size()) return wrap(rank, lane_index);
    enter(rank, lane_index, lane.stretch + 1);
    return true;
  }
  ++lane.turn;
  lane.pc = begin;
  lane.events += stretch.events;
  lane.epochs += stretch.epochs;
  lane.launch += stretch.host;
  if (!may_skip_ || lane_index != compute_lane || lane.clock <= now_) return true;
  queue_.push(lane.clock, rank | turn_bit, 0);
  lane.block = Block::turn;
  return false;
}

void Runner::enter(std::uint32_t rank, std::uint8_t lane_index, std::uint32_t stretch) {
  LaneState& lane = lane_of(rank, lane_index);
  lane.stretch = stretch;
  lane.turn = lane.events = lane.epochs = 0;
  lane.launch = Duration{};
  lane.pc = role_of(rank).begin(lane_index, stretch);
  lane.end = role_of(rank).ends[lane_index][stretch];
}

/// The lane has done its step: true when it goes on with the next.
bool Runner::wrap(std::uint32_t rank, std::uint8_t lane_index) {
  LaneState& lane = lane_of(rank, lane_index);
  const bool idle = role_of(rank).lanes[lane_index].empty();
  if (lane_index == compute_lane && (options_.cold || role_of(rank).mark.empty()))
    cross_boundary(rank, lane.clock);
  record_wrap(rank, lane_index, lane.step, lane.clock);
  if (idle || lane.step == last_step_) {
    lane.block = Block::stop;
    advance_host(rank);
    return false;
  }
  ++lane.step;
  enter(rank, lane_index, 0);
  lane.entered[lane.step & 1U] = lane.clock;
  advance_host(rank);
  return true;
}

void Runner::record_wrap(std::uint32_t rank, std::size_t lane, std::uint32_t step, Time when) {
  if (wraps_.size() <= step)
    wraps_.resize(step + 1, std::vector<Duration>(ranks_.size() * (max_lanes + 1)));
  wraps_[step][rank * (max_lanes + 1) + lane] = when.time_since_epoch();
}

/// When the last lane entered `step`; nothing while one is still in a step before it.
std::optional<Time> Runner::all_lanes_in(std::uint32_t rank, std::uint32_t step) const {
  const RoleLanes& role = role_of(rank);
  Time last{};
  for (std::uint8_t l = 0; l < role.lanes.size(); ++l) {
    if (role.lanes[l].empty()) continue;
    if (lane_of(rank, l).step < step) return std::nullopt;
    last = std::max(last, lane_of(rank, l).entered[step & 1U]);
  }
  return last;
}

void Runner::set_event(std::uint32_t rank, std::uint32_t event, std::uint32_t step, Time when) {
  events_.set(rank, event, step, when);
  RankState& state = ranks_[rank];
  for (unsigned left = state.waiting; left != 0; left &= left - 1) {
    const auto l = static_cast<std::uint8_t>(std::countr_zero(left));
    const LaneState& lane = lane_of(rank, l);
    if (lane.event != event || lane.step != step) continue;
    state.todo |= static_cast<LaneSet>(1U << l);
    state.waiting &= static_cast<LaneSet>(~(1U << l));
  }
  if (state.host_step != step) return;
  const HostWait* wait = next_host_wait(rank);
  if (wait != nullptr && wait->event + host_events(rank) == event) advance_host(rank);
}

/// Null: the host waits no more in this step.
const HostWait* Runner::next_host_wait(std::uint32_t rank) {
  const RoleLanes& role = role_of(rank);
  HostPlace& place = ranks_[rank].host_place;
  while (place.wait == role.host_ends[place.stretch]) {
    const std::uint32_t begin = role.host_begin(place.stretch);
    if (begin < place.wait && place.turn + 1 < role.stretches[place.stretch].turns) {
      ++place.turn;
      place.wait = begin;
    } else if (place.stretch + 1 < role.stretches.size()) {
      ++place.stretch;
      place.turn = 0;
    } else {
      return nullptr;
    }
  }
  return &role.host_waits[place.wait];
}

bool Runner::launched(std::uint32_t rank, std::uint32_t step, std::uint32_t epoch) const {
  const RankState& state = ranks_[rank];
  return step < state.host_step || (step == state.host_step && epoch <= state.host_epoch);
}

Time Runner::launch_time(std::uint32_t rank, const LaneState& lane,
                         const LaneInstruction& i) const {
  const std::size_t epochs = role_of(rank).num_epochs;
  const std::size_t first = first_epoch_[rank] + (lane.step & 1U) * epochs;
  return epoch_starts_[first + i.epoch + lane.epochs] + i.launch + lane.launch;
}

/// The later of the two; notes where that is the launch.
Time Runner::launched_at_least(std::uint32_t rank, Time ready, Time launch) {
  if (launch <= ready) return ready;
  ++ranks_[rank].launches_late;
  return launch;
}

/// Lets the host thread go on as far as it can: to its next host_wait whose event is not known, and
/// into the next step once every lane has entered this one (it runs at most one step ahead).
void Runner::advance_host(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  const RoleLanes& role = role_of(rank);
  const std::size_t epochs = role.num_epochs;
  bool moved = false;
  while (true) {
    Time* starts = &epoch_starts_[first_epoch_[rank]];
    const Time start = starts[(state.host_step & 1U) * epochs + state.host_epoch];
    if (const HostWait* wait = next_host_wait(rank)) {
      const std::uint32_t event = wait->event + host_events(rank);
      if (!events_.is_set(rank, event, state.host_step)) break;
      ++state.host_epoch;
      ++state.host_place.wait;
      starts[(state.host_step & 1U) * epochs + state.host_epoch] =
          std::max(start + wait->after, events_.time(rank, event, state.host_step));
      tell_host(rank);
    } else {
      record_wrap(rank, max_lanes, state.host_step, start + role.last_epoch);
      if (state.host_step == last_step_) break;
      const std::optional<Time> entered = all_lanes_in(rank, state.host_step);
      if (!entered) break;
      ++state.host_step;
      state.host_epoch = 0;
      state.host_place = {};
      starts[(state.host_step & 1U) * epochs] = std::max(start + role.last_epoch, *entered);
      tell_host(rank);
    }
    moved = true;
  }
  if (!moved) return;
  for (std::uint8_t l = 0; l < role.lanes.size(); ++l)
    if (lane_of(rank, l).block == Block::host) state.todo |= static_cast<LaneSet>(1U << l);
}

void Runner::tell_host(std::uint32_t rank) {
  if (timeline_ == nullptr) return;
  const RankState& state = ranks_[rank];
  const std::size_t of_step = (state.host_step & 1U) * std::size_t{role_of(rank).num_epochs};
  timeline_->host(rank, epoch_starts_[first_epoch_[rank] + of_step + state.host_epoch]);
}

/// Work beside the compute lane (copies): runs as launched, and slows the compute lane meanwhile.
void Runner::side_segment(std::uint32_t rank, std::uint8_t lane_index, const LaneInstruction& i) {
  LaneState& lane = lane_of(rank, lane_index);
  const SegmentMap map = compiled_.map(i.arg, 0, ranks_[rank].speed);
  const std::span<const SegmentKernel> kernels = compiled_.kernels(i.arg);
  const Time host = launch_time(rank, lane, i);
  const std::size_t known = ranks_[rank].side.size();
  const std::uint8_t traffic = system_.works[kernels.front().work].traffic;
  counters_.works += static_cast<std::int64_t>(kernels.size());
  if (has_own_segments()) draw_factors(rank, lane_index, kernels.size(), passing_factors_);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Time begin = launched_at_least(rank, lane.clock, host + kernels[k].launch);
    const Time end = begin + (has_own_segments() ? varied(map[k].duration, passing_factors_[k])
                                                 : map[k].duration);
    std::vector<SideWork>& side = ranks_[rank].side;
    if (side.size() > known && side.back().to == begin)
      side.back().to = end;
    else
      side.push_back({begin, end});
    lane.clock = end;
    if (timeline_ != nullptr && lane.step == last_step_)
      timeline_->work(rank, lane_index, kernels[k].work, begin, end);
  }
  for (std::size_t s = known; s < ranks_[rank].side.size(); ++s) {
    const SideWork& side = ranks_[rank].side[s];
    remember(rank, {side.from, side.from, side.to, traffic, lane_index});
    if (traffic != own_work) ranks_[rank].account.communication[traffic] += side.to - side.from;
  }
  mark_dirty(rank);
}

}  // namespace stepcast::engine
