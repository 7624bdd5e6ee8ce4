// How Fluid settles a change by solving only the flows that it reaches, and proves that the others
// keep their rates.
//
// The part. New flows are free, all others keep their rates; the free ones are solved alone in the
// room that the others leave. Where the theorem's conditions then fail, the flows that break them
// become free as well, until the conditions hold everywhere or the proof costs too much.
//
// Theorem. Call a link changed if a flow on it started, ended or has another rate than before. Let
// x be rates with
//   (1) sum of w x <= C on every link;
//   (2) every flow below its cap has a link that holds it back: it is the fastest there, and what
//       is left is less than one unit (1/64 byte/s) for each of the fastest flows below their caps;
//   (3) no changed link is full when a slower flow freezes. With the level at t, a link has left
//       A(t) = C - sum of w min(x, t), at least (what is left at x) + (fastest - t) x (weight of
//       the fastest); it is full if one unit more for every flow that still rises does not fit.
//       Enough: A(t) >= the weight of all its flows. Where that fails for t > T and a flow has a
//       rate between T and the fastest, all flows faster than T have to be free: the solve of the
//       part then saw A(t) and the rising flows as the whole solve would.
// Then progressive filling in whole units (max_min.hpp) gives exactly x: a changed link is full for
// the first time when its fastest flows freeze (3), that and the caps are what freezes a flow (2),
// and nothing freezes later than it can (1). A link that is not changed fills as it did before.
#include <algorithm>
#include <utility>

#include "engine/check.hpp"
#include "engine/fluid.hpp"

namespace stepcast::engine {

bool Fluid::settle_partly() {
  if (pause_ > 0) {
    --pause_;
    return false;
  }
  const std::uint64_t solves = counters_.solves;
  const bool proved = prove_part();
  for (const Freed& freed : freed_) {
    const Quanta rate = std::exchange(flows_[freed.flow].rate, freed.settled);
    if (proved) apply_rate(freed.flow, rate);
  }
  if (proved) ++(counters_.solves == solves ? counters_.local_settles : counters_.part_settles);
  if (!proved) pause_ = next_pause_;
  next_pause_ = proved ? 1 : std::min(2 * next_pause_, longest_pause);
  return proved;
}

bool Fluid::prove_part() {
  expects(++solve_ != 0, "fewer than 2^32 solves");
  looks_ = 0;
  freed_.clear();
  rooms_.clear();
  component_links_.clear();
  for (Flow flow : started_)
    if (flows_[flow].first_overloaded != none) free(flow);
  std::size_t solved = 0;
  do {
    solved = freed_.size();
    solve_part();
    for (std::uint32_t l : touched_)
      if (!widen_at(l)) return false;
    for (std::size_t i = 0, count = component_links_.size(); i < count; ++i)
      if (!widen_at(component_links_[i])) return false;
  } while (freed_.size() > solved);
  return true;
}

/// Lets the next solve decide the flow's rate.
void Fluid::free(Flow id) {
  FlowState& flow = flows_[id];
  if (flow.component == solve_) return;
  flow.component = solve_;
  flow.bottleneck = none;
  freed_.push_back({id, flow.rate});
  for (std::uint32_t e = flow.first_overloaded; e != none; e = entries_[e].next) {
    const LinkLoad& load = flow.loads[e - flow.first_entry];
    if (solver_link_of_[load.link] == solve_)
      rooms_[solver_link_[load.link]] += static_cast<Wide>(to_fixed(load.weight)) * flow.rate;
    else
      open(load.link);
  }
}

/// Notes the room that flows which are not free leave on the link.
void Fluid::open(std::uint32_t l) {
  solver_link_of_[l] = solve_;
  solver_link_[l] = static_cast<std::uint32_t>(rooms_.size());
  component_links_.push_back(l);
  looks_ += links_[l].num_users;
  Wide room = widen(links_[l].capacity);
  for (std::uint32_t p = 0; p < links_[l].num_users; ++p) {
    const FlowState& flow = flows_[user(l, p).flow];
    if (flow.component != solve_) room -= static_cast<Wide>(weight_of(user(l, p))) * flow.rate;
  }
  rooms_.push_back(room);
}

void Fluid::solve_part() {
  if (freed_.size() == 1) take_room(flows_[freed_.front().flow]);
  if (freed_.size() <= 1) return;
  solver_.clear();
  for (Wide room : rooms_) solver_.add_room(room);
  for (const Freed& freed : freed_) {
    const FlowState& flow = flows_[freed.flow];
    solver_.add_variable(flow.cap);
    for (std::uint32_t e = flow.first_overloaded; e != none; e = entries_[e].next) {
      const LinkLoad& load = flow.loads[e - flow.first_entry];
      solver_.add_load(solver_link_[load.link], to_fixed(load.weight));
    }
  }
  solve();
  for (std::uint32_t v = 0; v < freed_.size(); ++v) {
    FlowState& flow = flows_[freed_[v].flow];
    flow.rate = solver_.rate(v);
    flow.bottleneck = solved_bottleneck(v);
  }
}

/// The solve of a part of one flow.
void Fluid::take_room(FlowState& flow) {
  flow.rate = flow.cap;
  for (std::uint32_t e = flow.first_overloaded; e != none; e = entries_[e].next) {
    const LinkLoad& load = flow.loads[e - flow.first_entry];
    const Quanta rate = share(rooms_[solver_link_[load.link]], to_fixed(load.weight));
    if (rate >= flow.rate) continue;
    flow.rate = rate;
    flow.bottleneck = load.link;
  }
}

/// Frees the flows for which the theorem's conditions fail on the link. False if that cost too
/// much.
bool Fluid::widen_at(std::uint32_t l) {
  if (looks_ > most_looks()) return false;
  const LinkState state = state_of(l);
  ensures(state.left >= 0, "flows fit on their links");
  const bool overloaded = links_[l].overloaded;
  Quanta too_slow = state.fastest;
  for (std::uint32_t p = 0; p < links_[l].num_users; ++p) {
    const Flow id = user(l, p).flow;
    FlowState& flow = flows_[id];
    if (flow.bottleneck != l || flow.rate == flow.cap) continue;
    if (overloaded && holds_back(state, flow)) continue;
    if (flow.component == solve_)
      too_slow = std::min(too_slow, flow.rate);
    else if (!find_bottleneck(flow))
      free(id);
  }
  if (!overloaded) return true;
  if (too_slow < state.fastest) free_faster(l, too_slow);
  if (state.left >= state.weight) return true;
  const auto missing = static_cast<FixedWeight>(state.weight - state.left);
  const Quanta surely_before = state.fastest - missing / state.fastest_weight - 1;
  if (state.second > surely_before) free_faster(l, surely_before);
  return true;
}

void Fluid::free_faster(std::uint32_t l, Quanta rate) {
  for (std::uint32_t p = 0; p < links_[l].num_users; ++p)
    if (const Flow id = user(l, p).flow; flows_[id].rate > rate) free(id);
}

/// Another link that holds the flow back. False also if looking costs too much.
bool Fluid::find_bottleneck(FlowState& flow) {
  for (std::uint32_t e = flow.first_overloaded; e != none; e = entries_[e].next) {
    if (looks_ > most_looks()) return false;
    const std::uint32_t link = flow.loads[e - flow.first_entry].link;
    if (!holds_back(state_of(link), flow)) continue;
    flow.bottleneck = link;
    return true;
  }
  return false;
}

bool Fluid::holds_back(const LinkState& state, const FlowState& flow) {
  return flow.rate == state.fastest && state.left < state.fastest_uncapped_weight;
}

Fluid::LinkState Fluid::state_of(std::uint32_t l) {
  looks_ += links_[l].num_users;
  LinkState state{.left = widen(links_[l].capacity)};
  for (std::uint32_t p = 0; p < links_[l].num_users; ++p) {
    const FlowState& flow = flows_[user(l, p).flow];
    const FixedWeight weight = weight_of(user(l, p));
    state.left -= static_cast<Wide>(weight) * flow.rate;
    state.weight += weight;
    if (flow.rate > state.fastest) {
      state.second = state.fastest;
      state.fastest = flow.rate;
      state.fastest_weight = state.fastest_uncapped_weight = 0;
    }
    if (flow.rate == state.fastest) {
      state.fastest_weight += weight;
      if (flow.rate < flow.cap) state.fastest_uncapped_weight += weight;
    } else {
      state.second = std::max(state.second, flow.rate);
    }
  }
  return state;
}

}  // namespace stepcast::engine
