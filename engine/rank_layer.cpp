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
  RankState& state = ranks_[rank];
  LaneState& lane = lane_of(rank, lane_index);
  if (lane.block >= Block::transfer) return;
  lane.block = Block::none;
  state.waiting &= static_cast<LaneSet>(~(1U << lane_index));
  const LaneInstruction* const program = state.role->lanes[lane_index].data();
  while (true) {
    if (lane.pc == lane.end) {
      if (!next_turn(rank, lane_index)) return;
      continue;
    }
    const LaneInstruction& i = program[lane.pc];
    if (!launched(state, lane.step, i.epoch + lane.epochs)) {
      advance_host(rank);
      if (!launched(state, lane.step, i.epoch + lane.epochs)) {
        lane.block = Block::host;
        return;
      }
    }
    if (lane_index == compute_lane && state.todo != 0) {
      state.todo |= 1U;  // others first
      return;
    }
    switch (i.op) {
      case LaneOp::segment:
        if (lane_index != compute_lane)
          side_segment(rank, lane_index, i);
        else if (!compute_segment(rank, i))
          return;
        break;
      case LaneOp::record:
        set_event(rank, i.arg + lane.events, lane.step,
                  launched_at_least(state, lane.clock, launch_time(state, lane, i)));
        break;
      case LaneOp::wait:
        if (!wait(rank, lane_index, i.arg + lane.events)) return;
        break;
      case LaneOp::join:
        if (!join(rank, lane_index, i)) return;
        break;
      case LaneOp::mark:
        if (!options_.cold) cross_boundary(rank, lane.clock);
        break;
    }
    ++lane.pc;
    if (timeline_ != nullptr) [[unlikely]]
      timeline_->passed(rank, lane_index, lane.clock);
  }
}

/// False when the event has not happened: the lane is blocked.
bool Runner::wait(std::uint32_t rank, std::uint8_t lane_index, std::uint32_t event) {
  LaneState& lane = lane_of(rank, lane_index);
  const Time when = events_.time(rank, event, lane.step);
  if (when == EventTable::unset) {
    lane.block = Block::event;
    lane.event = event;
    ranks_[rank].waiting |= static_cast<LaneSet>(1U << lane_index);
    return false;
  }
  if (when <= lane.clock) return true;
  if (lane_index == compute_lane)
    account_gap(rank, role_of(rank).event_lane[event], lane.clock, when);
  lane.clock = when;
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
    wraps_.resize(step + 1, std::vector<Duration>(ranks_.size() * (num_lanes_ + 1)));
  wraps_[step][rank * (num_lanes_ + 1) + lane] = when.time_since_epoch();
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
  if (state.host_event == event && state.host_step == step) advance_host(rank);
}

/// Notes for which event the host waits next; null: for none in this step.
const HostWait* Runner::note_host_event(std::uint32_t rank) {
  const HostWait* wait = next_host_wait(rank);
  ranks_[rank].host_event = wait == nullptr ? no_event : wait->event + host_events(rank);
  return wait;
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

/// Lets the host thread go on as far as it can: to its next host_wait whose event is not known, and
/// into the next step once every lane has entered this one (it runs at most one step ahead).
void Runner::advance_host(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  const RoleLanes& role = role_of(rank);
  const std::size_t epochs = role.num_epochs;
  bool moved = false;
  while (true) {
    Time* const starts = state.epoch_starts;
    const Time start = starts[(state.host_step & 1U) * epochs + state.host_epoch];
    if (const HostWait* wait = note_host_event(rank)) {
      const std::uint32_t event = state.host_event;
      if (!events_.is_set(rank, event, state.host_step)) break;
      ++state.host_epoch;
      ++state.host_place.wait;
      starts[(state.host_step & 1U) * epochs + state.host_epoch] =
          std::max(start + wait->after, events_.time(rank, event, state.host_step));
      tell_host(rank);
    } else {
      record_wrap(rank, num_lanes_, state.host_step, start + role.last_epoch);
      if (state.host_step == last_step_) break;
      const std::optional<Time> entered = all_lanes_in(rank, state.host_step);
      if (!entered) break;
      ++state.host_step;
      state.host_epoch = 0;
      state.host_place = {};
      events_.clear(rank, state.host_step);
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
  const std::size_t of_step = (state.host_step & 1U) * std::size_t{state.role->num_epochs};
  timeline_->host(rank, state.epoch_starts[of_step + state.host_epoch]);
}

/// Work beside the compute lane (copies): runs as launched, and slows the compute lane meanwhile.
void Runner::side_segment(std::uint32_t rank, std::uint8_t lane_index, const LaneInstruction& i) {
  RankState& state = ranks_[rank];
  LaneState& lane = lane_of(rank, lane_index);
  const SegmentMap map = compiled_.map(i.arg, 0, state.speed);
  const std::span<const SegmentKernel> kernels = compiled_.kernels(i.arg);
  const Time host = launch_time(state, lane, i);
  std::vector<SideWork>& side = state.side;
  const std::size_t known = side.size();
  const std::uint8_t traffic = system_.works[kernels.front().work].traffic;
  counters_.works += static_cast<std::int64_t>(kernels.size());
  if (has_own_segments()) draw_factors(rank, lane_index, kernels.size(), passing_factors_);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Time begin = launched_at_least(state, lane.clock, host + kernels[k].launch);
    const Time end = begin + (has_own_segments() ? varied(map[k].duration, passing_factors_[k])
                                                 : map[k].duration);
    if (side.size() > known && side.back().to == begin)
      side.back().to = end;
    else
      side.push_back({begin, end});
    lane.clock = end;
    if (timeline_ != nullptr && lane.step == last_step_)
      timeline_->work(rank, lane_index, kernels[k].work, begin, end);
  }
  for (std::size_t s = known; s < side.size(); ++s) {
    remember(rank, {side[s].from, side[s].from, side[s].to, traffic, lane_index});
    if (traffic != own_work) state.account.communication[traffic] += side[s].to - side[s].from;
  }
  mark_dirty(rank);
}

}  // namespace stepcast::engine
