// The compute lane: segments by their max-plus map while nothing interferes; cut and walked kernel
// by kernel where a communication starts or ends under them. Also: where the time went.
#include <algorithm>
#include <bit>

#include "engine/runner.hpp"

namespace stepcast::engine {
namespace {

Duration scaled(Duration remaining, Duration from, Duration to) {
  return to_duration(seconds(remaining) * (seconds(to) / seconds(from)));
}

Duration overlap(Time a_from, Time a_to, Time b_from, Time b_to) {
  return std::max(Duration{}, std::min(a_to, b_to) - std::max(a_from, b_from));
}

}  // namespace

/// Runs segment `i.arg`; false when its end depends on what others do.
bool Runner::compute_segment(std::uint32_t rank, const LaneInstruction& i) {
  RankState& state = ranks_[rank];
  LaneState& lane = lane_of(rank, compute_lane);
  const Time host = launch_time(state, lane, i);
  if (!state.side.empty())
    std::erase_if(state.side, [&](const SideWork& s) { return s.to <= lane.clock; });
  const SegmentMap map = compiled_.map(i.arg, 0, state.speed);
  const std::size_t kernels = map.size() - 1;
  const bool flies = state.outstanding != 0 || !state.side.empty() || !options_.segments;
  counters_.works += static_cast<std::int64_t>(kernels);
  if (has_own_segments())
    draw_factors(rank, compute_lane, kernels, flies ? factors_[rank] : passing_factors_);
  if (!flies) {
    if (has_own_segments()) {
      lane.clock = run_own_segment(rank, compiled_.kernels(i.arg), map, lane.clock, host);
      return true;
    }
    const Time end = launched_at_least(state, lane.clock + map[0].busy, host + map[0].launched);
    state.account.compute += map[0].busy;
    state.account.host += end - lane.clock - map[0].busy;
    lane.clock = end;
    return true;
  }
  // Slowed kernels only begin later than these: what is not late alone is not late at all.
  launched_at_least(state, lane.clock + map[0].busy, host + map[0].launched);
  Flight& flight = state.flight;
  const Time at = std::max(lane.clock, host);
  flight = {.segment = i.arg,
            .version = flight.version + 1,
            .begin = lane.clock,
            .at = at,
            .seen = at,
            .host = host,
            .remaining = duration_of(rank, map, 0),
            .active = true};
  ++counters_.walked;
  predict(rank);
  flight.base = flight.total;
  set_state(rank, at);
  return fly(rank);
}

/// Takes the flight as far as this rank alone decides; posts the next event when others have a say.
bool Runner::fly(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  Flight& flight = state.flight;
  const Time horizon = options_.segments ? next_surprise(rank) : Time::min();
  while (true) {
    if (std::min(flight.end, flight.change) >= horizon) {
      queue_.push(std::min(flight.end, flight.change), rank, ++flight.version);
      lane_of(rank, compute_lane).block = Block::flight;
      return false;
    }
    if (flight.end <= flight.change) {
      finish_flight(rank);
      return true;
    }
    set_state(rank, flight.change);
  }
}

/// At the end of an instant: brings the flight up to `now` and looks again.
void Runner::refresh(std::uint32_t rank, Time now) {
  RankState& state = ranks_[rank];
  Flight& flight = state.flight;
  state.dirty = false;
  if (!flight.active) return;
  if (flight.end <= now) {
    finish_flight(rank);
  } else {
    set_state(rank, std::max(now, flight.seen));
    if (!fly(rank)) return;
  }
  LaneState& lane = lane_of(rank, compute_lane);
  lane.block = Block::none;
  pass(rank, compute_lane);
  state.todo |= 1U;
  list(rank);
}

/// When the flight ends in its state, and how long its kernels will have taken.
void Runner::predict(std::uint32_t rank) {
  Flight& flight = ranks_[rank].flight;
  const SegmentMap map = flight_map(rank);
  if (has_own_segments()) {
    predict_own(rank, map);
    return;
  }
  Time begin = flight.at;
  if (flight.whole)
    begin = std::max(begin, flight.host + compiled_.kernels(flight.segment)[flight.kernel].launch);
  const Suffix& rest = map[flight.kernel + 1];
  flight.end = std::max(begin + flight.remaining + rest.busy, flight.host + rest.launched);
  flight.total = flight.consumed + flight.remaining + rest.busy;
}

/// Executes kernels up to `now`, which is before the predicted end.
void Runner::advance(std::uint32_t rank, Time now) {
  Flight& flight = ranks_[rank].flight;
  if (now <= flight.at) return;
  const SegmentMap map = flight_map(rank);
  const std::span<const SegmentKernel> kernels = compiled_.kernels(flight.segment);
  while (true) {
    const Time begin =
        flight.whole ? std::max(flight.at, flight.host + kernels[flight.kernel].launch) : flight.at;
    if (begin >= now) {
      flight.at = now;
      return;
    }
    const Time end = begin + flight.remaining;
    if (end > now) {
      flight.consumed += now - begin;
      flight.remaining = end - now;
      flight.whole = false;
      flight.at = now;
      return;
    }
    flight.consumed += flight.remaining;
    flight.at = end;
    flight.whole = true;
    flight.remaining = duration_of(rank, map, ++flight.kernel);
    const Suffix& rest = map[flight.kernel];
    if (!has_own_segments() && flight.host + rest.launched <= end + rest.busy)
      pass_kernels(flight, map, now);
  }
}

/// The flight's kernels follow one another, as none is launched late: passes those over by `now`.
void Runner::pass_kernels(Flight& flight, SegmentMap map, Time now) {
  const Duration all = map[flight.kernel].busy;
  const Duration left = flight.at + all - now;
  const auto next = std::partition_point(map.begin() + flight.kernel, map.end(),
                                         [&](const Suffix& s) { return s.busy > left; });
  auto kernel = static_cast<std::uint32_t>(next - map.begin());
  if (next->busy < left) --kernel;  // under way
  flight.at += all - map[kernel].busy;
  flight.consumed += all - map[kernel].busy;
  flight.remaining = map[kernel].duration;
  flight.kernel = kernel;
}

/// The flight goes on from `when` in the state of that instant.
void Runner::set_state(std::uint32_t rank, Time when) {
  Flight& flight = ranks_[rank].flight;
  flight.seen = when;
  const std::uint32_t new_state = look_beside(rank);
  if (new_state == flight.state) return;
  advance(rank, when);
  const Duration from = duration_of(rank, flight_map(rank), flight.kernel);
  flight.state = new_state;
  if (timeline_ != nullptr) timeline_->beside(rank, flight.at, new_state);
  const Duration to = duration_of(rank, flight_map(rank), flight.kernel);
  flight.remaining = flight.whole ? to : scaled(flight.remaining, from, to);
  predict(rank);
}

void Runner::finish_flight(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  Flight& flight = state.flight;
  state.account.compute += flight.total;
  state.account.interference += flight.total - flight.base;
  state.account.host += flight.end - flight.begin - flight.total;
  flight.active = false;
  LaneState& lane = lane_of(rank, compute_lane);
  lane.clock = flight.end;
  if (timeline_ != nullptr && lane.step == last_step_)
    timeline_->work(rank, compute_lane, compiled_.kernels(flight.segment)[0].work,
                    flight.end - flight.total, flight.end);
}

/// Which classes of communication are there when the flight was seen last, and when that changes
/// next (Flight::change), as far as known now.
std::uint32_t Runner::look_beside(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  const Time t = state.flight.seen;
  std::array<std::uint32_t, num_classes> level{};
  Time next = never;
  for (unsigned left = state.outstanding; left != 0; left &= left - 1) {
    const Membership& m = membership_of(rank, static_cast<std::uint8_t>(std::countr_zero(left)));
    if (m.started > t) next = std::min(next, m.started);
    if (m.arrived > t) {
      next = std::min(next, m.arrived);
      continue;
    }
    std::uint32_t& at = level[m.interference_class];
    at = std::max(at, m.started <= t ? 2U : 1U);
  }
  for (const SideWork& s : state.side) {
    if (s.to <= t) continue;
    if (s.from <= t) level[s.interference_class] = 2;
    next = std::min(next, s.from > t ? s.from : s.to);
  }
  state.flight.change = next;
  return level[0] + 3 * (level[1] + 3 * (level[2] + 3 * level[3]));
}

/// Until then the rank's interference changes only as look_beside() says: a transfer for which
/// members are missing starts when the last has come, one under way moves at most at its cap, and
/// the rank's other lanes wait for these or for the compute lane.
Time Runner::next_surprise(std::uint32_t rank) const {
  Time first = never;
  for (unsigned left = ranks_[rank].outstanding; left != 0; left &= left - 1) {
    const Membership& m = membership_of(rank, static_cast<std::uint8_t>(std::countr_zero(left)));
    const GroupState& group = meetings_.group(m.communicator);
    first = std::min(first, std::max(now_, m.started == never ? group.latest : group.ends_after));
  }
  return first;
}

void Runner::remember(std::uint32_t rank, const Past& past) {
  std::vector<Past>& known = ranks_[rank].past;
  if (known.size() == known.capacity()) {
    const Time done = lane_of(rank, compute_lane).clock;
    std::erase_if(known, [&](const Past& p) { return p.ended <= done; });
    if (known.size() > known.capacity() / 2) known.reserve(2 * known.capacity());
  }
  known.push_back(past);
}

/// The compute lane stood still over [from, to], waiting for `lane`: says why, from what that lane
/// did meanwhile, then from side work of other lanes (a copy-in that the awaited gather waited
/// for). What nothing explains is the host's.
void Runner::account_gap(std::uint32_t rank, std::uint8_t lane, Time from, Time to) {
  RankAccount& account = ranks_[rank].account;
  Duration left = to - from;
  const auto work = [&](const Past& past) {
    const Duration d = std::min(overlap(past.started, past.ended, from, to), left);
    account.compute += d;
    left -= d;
  };
  for (const Past& past : ranks_[rank].past) {
    if (past.lane != lane) continue;
    if (past.traffic == own_work) {
      work(past);
      continue;
    }
    const Duration moving = overlap(past.started, past.ended, from, to);
    const Duration waiting = overlap(past.arrived, past.started, from, to);
    account.exposed[past.traffic] += moving;
    (past.traffic == static_cast<std::uint8_t>(Traffic::pipeline) ? account.bubble
                                                                  : account.wait) += waiting;
    left -= moving + waiting;
  }
  for (const Past& past : ranks_[rank].past) {
    if (past.lane == lane) continue;
    if (past.traffic == own_work) work(past);
    if (past.traffic == static_cast<std::uint8_t>(Traffic::offload)) {
      const Duration d = std::min(overlap(past.started, past.ended, from, to), left);
      account.exposed[past.traffic] += d;
      left -= d;
    }
  }
  account.host += left;
}

void Runner::cross_boundary(std::uint32_t rank, Time now) {
  RankState& state = ranks_[rank];
  const std::uint32_t step = lane_of(rank, compute_lane).step;
  const std::size_t index = role_of(rank).mark.empty() || options_.cold ? step : step - 1;
  if (boundaries_.size() <= index) boundaries_.resize(index + 1, std::vector<Time>(ranks_.size()));
  boundaries_[index][rank] = now;
  RankAccount next;  // transfers beside the compute lane that are known but not over
  for (const Past& past : state.past)
    if (past.traffic != own_work && past.ended > now)
      next.communication[past.traffic] += past.ended - past.arrived;
  for (std::size_t t = 0; t < num_traffic; ++t)
    state.account.communication[t] -= next.communication[t];
  if (options_.measured == 0)
    state.last_account = state.account;
  else if (index > 0)  // the first step warms up
    state.last_account += state.account;
  state.account = next;
}

}  // namespace stepcast::engine
