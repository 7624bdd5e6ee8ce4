// Turns of a repeat that are like those before: micro-batches of a pipeline soon run in lock step.
// Whenever rank 0 enters a turn, all that the future depends on is photographed, relative to the
// instant and to the ranks' turns. Two alike photographs, some turns apart, show a period: what
// came between comes again until a lane runs out of turns, so all periods but the last few are
// passed at once. Ranks need not have as many turns in a period: of an interleaved pipeline, the
// first stage's turn is a round over its chunks, a middle one's a micro-batch of any chunk. Same
// picosecond as turn by turn.
//
// What hosts launch long before it is needed needs not be alike: where no launch decided anything
// in the period, and the host is no slower than the device, none will. Lanes outside the repeat
// (behind it, waiting for its last turn) must not have moved at all.
#include <algorithm>
#include <array>
#include <bit>

#include "engine/runner.hpp"

namespace stepcast::engine {
namespace {

constexpr std::size_t most_photographs = 6;  // the longest period that is found, in turns

}  // namespace

void Photograph::add(std::uint64_t value) {
  first = (first ^ value) * 0x9e3779b97f4a7c15U;
  first ^= first >> 29;
  second = (second + value) * 0xd6e8feb86659fd93U;
  second ^= second >> 32;
}

void Runner::prepare_turns() {
  bool repeats = false;
  for (std::uint32_t role = 0; role < system_.roles.size(); ++role)
    repeats = repeats || compiled_.role(role).repeats();
  may_skip_ = repeats && options_.skip_turns && options_.segments && timeline_ == nullptr &&
              !has_own_segments();
  expects(ranks_.size() < turn_bit && meetings_.size() < transfer_bit, "fewer ranks than 2^30");
}

bool Runner::in_repeat(std::uint32_t rank, std::uint8_t lane) const {
  const RoleLanes& role = role_of(rank);
  const std::uint32_t stretch = lane_of(rank, compute_lane).stretch;
  return lane_of(rank, lane).stretch == stretch &&
         role.begin(lane, stretch) < role.ends[lane][stretch];
}

/// The first and the last turn that a lane of the rank is in.
std::pair<std::uint32_t, std::uint32_t> Runner::turns_of(std::uint32_t rank) const {
  std::uint32_t low = lane_of(rank, compute_lane).turn, high = low;
  for (std::uint8_t l = 0; l < role_of(rank).lanes.size(); ++l) {
    if (!in_repeat(rank, l)) continue;
    low = std::min(low, lane_of(rank, l).turn);
    high = std::max(high, lane_of(rank, l).turn);
  }
  return {low, high};
}

void Runner::skip_turns() {
  const LaneState& lane = lane_of(0, compute_lane);
  const Stretch& stretch = role_of(0).stretches[lane.stretch];
  if (lane.turn + 2 >= stretch.turns) return;
  const std::array<std::uint32_t, 3> turn{lane.step, lane.stretch, lane.turn};
  if (turn == looked_at_turn_) return;
  if (turn[0] != looked_at_turn_[0] || turn[1] != looked_at_turn_[1]) photographs_.clear();
  looked_at_turn_ = turn;
  Photograph now{.now = now_, .step = lane.step, .stretch = lane.stretch};
  if (!photograph(now)) return;
  for (const Photograph& before : photographs_) {
    const std::int64_t periods = before.alike(now) ? alike_periods(before, now) : 0;
    if (periods == 0) continue;
    skip(before, now, periods);
    photographs_.clear();
    return;
  }
  if (photographs_.size() == most_photographs) photographs_.erase(photographs_.begin());
  photographs_.push_back(std::move(now));
}

/// False when no turn can be skipped as things stand.
bool Runner::photograph(Photograph& p) const {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)  // most that cannot be told at once
    if (role_of(r).stretches[lane_of(r, compute_lane).stretch].turns == 1) return false;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    if (!add_rank(p, r)) return false;
  add_transfers(p);
  p.counters = counters_;
  return true;
}

bool Runner::add_rank(Photograph& p, std::uint32_t rank) const {
  const RankState& state = ranks_[rank];
  const LaneState& base = lane_of(rank, compute_lane);
  const Stretch& stretch = role_of(rank).stretches[base.stretch];
  const auto [low, high] = turns_of(rank);
  // Lanes stay out of the turns whose events are awaited behind the repeat, the host in the repeat.
  std::uint32_t furthest = high + stretch.reach;
  if (stretch.epochs > 0) furthest = std::max(furthest, state.host_place.turn);
  if (low < stretch.reach || furthest + 1 >= stretch.turns || state.todo != 0) return false;
  p.turns.push_back(base.turn);
  p.room.push_back(stretch.turns - 1 - furthest);
  p.add(std::uint64_t{base.stretch});
  p.add(std::uint64_t{state.outstanding} << 16 | state.waiting);
  for (std::uint8_t l = 0; l < role_of(rank).lanes.size(); ++l)
    if (!add_lane(p, rank, l)) return false;
  if (state.flight.active) add_flight(p, rank);
  for (const SideWork& side : state.side) {
    if (side.to <= base.clock) continue;
    p.add(side.from);
    p.add(side.to);
    p.add(std::uint64_t{side.interference_class});
  }
  for (const Past& past : state.past) {
    if (past.ended <= base.clock) continue;
    for (const Time t : {past.arrived, past.started, past.ended}) p.add(t);
    p.add(std::uint64_t{past.traffic} << 8 | past.lane);
  }
  for (std::uint32_t t = low - stretch.reach; t <= high; ++t)
    for (std::uint32_t e = 0; e < stretch.events; ++e) {
      const std::uint32_t event = stretch.first_event + t * stretch.events + e;
      const bool set = events_.is_set(rank, event, base.step);
      p.add(std::uint64_t{set});
      if (set) p.add(events_.time(rank, event, base.step));
    }
  p.accounts.push_back(state.account);
  p.launches_late.push_back(state.launches_late);
  return add_host(p, rank, low);
}

bool Runner::add_host(Photograph& p, std::uint32_t rank, std::uint32_t low) const {
  const RankState& state = ranks_[rank];
  const LaneState& base = lane_of(rank, compute_lane);
  const RoleLanes& role = role_of(rank);
  const Stretch& stretch = role.stretches[base.stretch];
  const Time* starts = state.epoch_starts + (base.step & 1U) * role.num_epochs;
  p.add(std::uint64_t{state.host_step});
  p.add(std::uint64_t{state.host_place.stretch} << 32 | state.host_place.wait);
  if (stretch.epochs == 0) {
    p.add(std::uint64_t{state.host_epoch} << 32 | state.host_place.turn);
    p.hosts.push_back(starts[stretch.first_epoch] + base.launch - p.now);
    return true;
  }
  p.hosts.emplace_back();
  if (state.host_step != base.step || state.host_place.stretch != base.stretch) return false;
  p.add(std::uint64_t{state.host_place.turn} - base.turn);
  const std::uint32_t first = stretch.first_epoch + low * stretch.epochs;
  p.add(std::uint64_t{state.host_epoch} - first);
  for (std::uint32_t e = first; e <= state.host_epoch; ++e) p.add(starts[e]);
  return true;
}

bool Runner::add_lane(Photograph& p, std::uint32_t rank, std::uint8_t lane_index) const {
  const LaneState& lane = lane_of(rank, lane_index);
  const LaneState& base = lane_of(rank, compute_lane);
  if (role_of(rank).lanes[lane_index].empty()) return true;
  const std::uint32_t events = role_of(rank).stretches[base.stretch].events;
  p.add(std::uint64_t{lane.pc} << 32 | lane.step);
  p.add(static_cast<std::uint64_t>(lane.block));
  if (!in_repeat(rank, lane_index)) {
    p.add(std::uint64_t{lane.stretch} << 32 | lane.turn);
    p.add(std::uint64_t{lane.event});
    p.add(lane.clock.time_since_epoch());
    return lane.block == Block::event || lane.block == Block::host || lane.block == Block::stop;
  }
  p.add(std::uint64_t{lane.turn} - base.turn);
  p.add(lane.clock);
  if (lane.block == Block::event) p.add(std::uint64_t{lane.event} - base.turn * events);
  const Membership& membership = membership_of(rank, lane_index);
  if (lane.block != Block::transfer) return true;
  p.add(membership.arrived);
  p.add(std::uint64_t{membership.interference_class});
  if (membership.started != never) p.add(membership.started);
  return true;
}

/// Its host is a launch of this turn: see alike_periods().
void Runner::add_flight(Photograph& p, std::uint32_t rank) const {
  const Flight& flight = ranks_[rank].flight;
  p.add(std::uint64_t{flight.segment} << 32 | flight.kernel);
  p.add(std::uint64_t{flight.state} << 1 | (flight.whole ? 1U : 0U));
  p.add(flight.begin);
  p.add(flight.at);
  p.add(flight.seen);
  for (const Duration d : {flight.remaining, flight.consumed, flight.base}) p.add(d);
}

/// Transfers that wait to start are those whose members are all there and that are no flow yet.
void Runner::add_transfers(Photograph& p) const {
  for (std::uint32_t c = 0; c < meetings_.size(); ++c) {
    const GroupState& group = meetings_.group(c);
    if (group.arrived == 0) continue;
    p.add(std::uint64_t{c} << 32 | group.transfer);
    p.add(std::uint64_t{group.arrived});
    p.add(group.latest);
  }
  for (const Fluid::Active& flow : fluid_.settled()) {
    p.add(flow.tag);
    p.add(std::bit_cast<std::uint64_t>(flow.remaining));
    p.add(flow.since);
    p.add(flow.end);
    p.add(meetings_.group(static_cast<std::uint32_t>(flow.tag)).started);
  }
}

/// Times that what happened between the two comes again before a lane runs out of turns.
std::int64_t Runner::alike_periods(const Photograph& before, const Photograph& now) const {
  std::uint32_t periods = ~std::uint32_t{0};
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const Stretch& stretch = role_of(r).stretches[lane_of(r, compute_lane).stretch];
    const std::uint32_t turns = now.turns[r] - before.turns[r];
    if (turns == 0) return 0;
    periods = std::min(periods, now.room[r] / turns);
    if (stretch.epochs > 0 || now.hosts[r] == before.hosts[r]) continue;
    if (now.launches_late[r] != before.launches_late[r]) return 0;
    if (turns * stretch.host > now.now - before.now) return 0;
  }
  return periods;
}

void Runner::skip(const Photograph& before, const Photograph& now, std::int64_t periods) {
  const Duration time = periods * (now.now - before.now);
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const auto turns = static_cast<std::uint32_t>(periods) * (now.turns[r] - before.turns[r]);
    counters_.skipped += turns;
    skip_events(r, turns, time);
    skip_rank(r, turns, time);
    ranks_[r].account.repeat_since(before.accounts[r], periods);
  }
  meetings_.shift(time);
  fluid_.shift(time);
  queue_.shift(time);
  now_ += time;
  const auto repeat = [&](std::int64_t RunResult::*counter) {
    counters_.*counter += periods * (counters_.*counter - before.counters.*counter);
  };
  for (const auto counter : {&RunResult::works, &RunResult::joins, &RunResult::transfers,
                             &RunResult::walked, &RunResult::flows})
    repeat(counter);
}

/// Events and epochs that lanes may still ask for: those of the turns in which lanes are, and
/// before them as far back as waits reach.
void Runner::skip_events(std::uint32_t rank, std::uint32_t turns, Duration time) {
  const LaneState& base = lane_of(rank, compute_lane);
  const RoleLanes& role = role_of(rank);
  const Stretch& stretch = role.stretches[base.stretch];
  const auto [low, high] = turns_of(rank);
  const std::uint32_t first = stretch.first_event + (low - stretch.reach) * stretch.events;
  for (std::uint32_t e = stretch.first_event + (high + 1) * stretch.events; e-- > first;)
    events_.repeat(rank, e, e + turns * stretch.events, base.step, time);
  if (stretch.epochs == 0) return;
  RankState& state = ranks_[rank];
  Time* starts = state.epoch_starts + (base.step & 1U) * role.num_epochs;
  for (std::uint32_t e = state.host_epoch + 1; e-- > stretch.first_epoch + low * stretch.epochs;)
    starts[e + turns * stretch.epochs] = starts[e] + time;
  state.host_epoch += turns * stretch.epochs;
  state.host_place.turn += turns;
  note_host_event(rank);
}

void Runner::skip_rank(std::uint32_t rank, std::uint32_t turns, Duration time) {
  RankState& state = ranks_[rank];
  const Stretch& stretch = role_of(rank).stretches[lane_of(rank, compute_lane).stretch];
  for (std::uint8_t l = 0; l < role_of(rank).lanes.size(); ++l) {
    if (!in_repeat(rank, l)) continue;
    LaneState& lane = lane_of(rank, l);
    lane.clock += time;
    lane.turn += turns;
    lane.events += turns * stretch.events;
    lane.event += turns * stretch.events;
    lane.epochs += turns * stretch.epochs;
    lane.launch += turns * stretch.host;
    Membership& membership = membership_of(rank, l);
    if (lane.block != Block::transfer) continue;
    membership.arrived += time;
    if (membership.started != never) membership.started += time;
  }
  state.flight.begin += time;
  state.flight.at += time;
  state.flight.seen += time;
  state.flight.end += time;
  state.flight.change += state.flight.change == never ? Duration{} : time;
  state.flight.host += stretch.epochs > 0 ? time : turns * stretch.host;
  for (SideWork& side : state.side)
    side = {side.from + time, side.to + time, side.interference_class};
  for (Past& past : state.past) {
    past.arrived += time;
    past.started += time;
    past.ended += time;
  }
}

}  // namespace stepcast::engine
