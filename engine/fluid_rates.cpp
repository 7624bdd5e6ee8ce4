// How Fluid decides rates: Fluid::settle() and what it needs.
#include <algorithm>

#include "engine/check.hpp"
#include "engine/fluid.hpp"

namespace stepcast::engine {

void Fluid::refresh_overloads() {
  for (std::uint32_t l : touched_) {
    Link& link = links_[l];
    link.touched = false;
    const bool overloaded = link.demand > link.capacity;
    if (overloaded == link.overloaded) continue;
    link.overloaded = overloaded;
    for (std::uint32_t p = 0; p < link.num_users; ++p)
      overloaded ? list_overloaded(user(l, p)) : unlist_overloaded(user(l, p));
  }
}

void Fluid::list_overloaded(User user) {
  std::uint32_t& first = flows_[user.flow].first_overloaded;
  entries_[user.entry].previous = none;
  entries_[user.entry].next = first;
  if (first != none) entries_[first].previous = user.entry;
  first = user.entry;
}

void Fluid::unlist_overloaded(User user) {
  const Entry& entry = entries_[user.entry];
  if (entry.next != none) entries_[entry.next].previous = entry.previous;
  (entry.previous == none ? flows_[user.flow].first_overloaded : entries_[entry.previous].next) =
      entry.next;
}

/// Everything that the touched links reach over overloaded links goes into the solver.
void Fluid::collect_component() {
  expects(++solve_ != 0, "fewer than 2^32 solves");
  solver_.clear();
  component_.clear();
  component_links_.clear();
  frontier_.clear();
  // A touched link that is no longer overloaded binds nobody, but its flows may now be faster.
  for (std::uint32_t l : touched_) {
    if (links_[l].overloaded) continue;
    for (std::uint32_t p = 0; p < links_[l].num_users; ++p) collect_flow(user(l, p).flow);
  }
  for (std::uint32_t l : touched_)
    if (links_[l].overloaded) reach(l);
  while (!frontier_.empty()) {
    const std::uint32_t l = frontier_.back();
    frontier_.pop_back();
    for (std::uint32_t p = 0; p < links_[l].num_users; ++p) collect_flow(user(l, p).flow);
  }
}

void Fluid::collect_flow(Flow id) {
  FlowState& flow = flows_[id];
  if (flow.component == solve_) return;
  flow.component = solve_;
  component_.push_back(id);
  solver_.add_variable(flow.cap);
  for (std::uint32_t e = flow.first_overloaded; e != none; e = entries_[e].next) {
    const LinkLoad& load = flow.loads[e - flow.first_entry];
    reach(load.link);
    solver_.add_load(solver_link_[load.link], to_fixed(load.weight));
  }
}

void Fluid::reach(std::uint32_t link) {
  if (solver_link_of_[link] == solve_) return;
  solver_link_of_[link] = solve_;
  solver_link_[link] = solver_.add_link(links_[link].capacity);
  component_links_.push_back(link);
  frontier_.push_back(link);
}

void Fluid::settle_component() {
  collect_component();
  solver_.solve();
  ++counters_.solves;
  counters_.solved_flows += solver_.num_variables();
  counters_.solved_loads += solver_.num_loads();
  for (std::uint32_t v = 0; v < component_.size(); ++v) {
    const std::uint32_t link = solver_.bottleneck(v);
    flows_[component_[v]].bottleneck =
        link == MaxMinSolver::no_link ? none : component_links_[link];
    apply_rate(component_[v], solver_.rate(v));
  }
}

// Most starts and ends on overloaded links change nobody else's rate. settle_locally() proves that
// from the touched links alone, or says that it cannot.
//
// Theorem. Let x be rates with
//   (1) sum of w x <= C on every link;
//   (2) every flow below its cap has a link on which it is the fastest and which is full: what is
//       left is less than one unit (1/64 byte/s) for each of the fastest flows below their caps;
//   (3) on every link, either one unit more for every flow would fit, or every slower flow is so
//       much slower than the fastest that the link is not yet full when the slower one freezes:
//       by more than 1 + (all weights) / (weights of the fastest).
// Then progressive filling in whole units gives exactly x: a link is full for the first time when
// its fastest flows freeze (3), those and the caps are what freezes a flow (2), and nothing
// freezes later than it can (1). Links that are not touched keep the three properties.

Fluid::LinkState Fluid::state_of(std::uint32_t l) {
  looks_ += links_[l].num_users;
  LinkState state{.left = widen(links_[l].capacity)};
  for (std::uint32_t p = 0; p < links_[l].num_users; ++p) {
    const User& u = p == 0 ? links_[l].first : more_users_[l][p - 1];
    const FlowState& flow = flows_[u.flow];
    const FixedWeight weight = to_fixed(flow.loads[u.entry - flow.first_entry].weight);
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

bool Fluid::settle_locally() {
  constexpr std::size_t most_starts = 4;  // beyond, several new flows usually share a link
  if (started_.size() > most_starts || touched_.size() > most_looks) return false;
  looks_ = 0;
  tentative_.clear();
  bool proved = true;
  for (Flow flow : started_) proved = proved && give_what_is_left(flow);
  for (std::uint32_t l : touched_) proved = proved && holds_on(l);
  for (Flow flow : tentative_) {
    const Quanta rate = flows_[flow].rate;
    flows_[flow].rate = 0;
    if (proved) apply_rate(flow, rate);
  }
  counters_.local_settles += proved;
  return proved;
}

/// A new flow takes what the others leave on its overloaded links. False if that is nothing.
bool Fluid::give_what_is_left(Flow id) {
  FlowState& flow = flows_[id];
  Quanta rate = flow.cap;
  flow.bottleneck = none;
  for (std::uint32_t e = flow.first_overloaded; e != none; e = entries_[e].next) {
    const LinkLoad& load = flow.loads[e - flow.first_entry];
    if (looks_ > most_looks) return false;
    const Wide left = state_of(load.link).left;
    const FixedWeight weight = to_fixed(load.weight);
    if (left < weight) return false;
    if (const Quanta part = share(left, weight); part < rate) {
      rate = part;
      flow.bottleneck = load.link;
    }
  }
  flow.rate = rate;
  tentative_.push_back(id);
  return true;
}

/// Whether the theorem's three conditions hold on a touched link and for the flows it held back.
bool Fluid::holds_on(std::uint32_t l) {
  if (looks_ > most_looks) return false;
  const Link& link = links_[l];
  const LinkState state = state_of(l);
  if (link.overloaded) {
    if (state.left < 0) return false;
    const bool loose = state.left >= state.weight;
    if (!loose && state.second + 2 + state.weight / state.fastest_weight > state.fastest &&
        state.second > 0)
      return false;
  }
  for (std::uint32_t p = 0; p < link.num_users; ++p) {
    const Flow id = user(l, p).flow;
    if (flows_[id].bottleneck != l || flows_[id].rate == flows_[id].cap) continue;
    if (link.overloaded && holds_back(state, flows_[id])) continue;
    if (!find_bottleneck(flows_[id])) return false;
  }
  return true;
}

bool Fluid::holds_back(const LinkState& state, const FlowState& flow) {
  return flow.rate == state.fastest && state.left >= 0 &&
         state.left < state.fastest_uncapped_weight;
}

bool Fluid::find_bottleneck(FlowState& flow) {
  for (std::uint32_t e = flow.first_overloaded; e != none; e = entries_[e].next) {
    if (looks_ > most_looks) return false;
    const std::uint32_t link = flow.loads[e - flow.first_entry].link;
    if (!holds_back(state_of(link), flow)) continue;
    flow.bottleneck = link;
    return true;
  }
  return false;
}

}  // namespace stepcast::engine
