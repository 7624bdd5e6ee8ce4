// How Fluid decides rates: which links are overloaded, and the solve of a whole component. See
// fluid_part.cpp for what is tried before.
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
  solve();
  ++counters_.whole_settles;
  component_loads_ = solver_.num_loads();
  for (std::uint32_t v = 0; v < component_.size(); ++v) {
    flows_[component_[v]].bottleneck = solved_bottleneck(v);
    apply_rate(component_[v], solver_.rate(v));
  }
}

void Fluid::solve() {
  solver_.solve();
  ++counters_.solves;
  counters_.solved_flows += solver_.num_variables();
  counters_.solved_loads += solver_.num_loads();
}

std::uint32_t Fluid::solved_bottleneck(std::uint32_t variable) const {
  const std::uint32_t link = solver_.bottleneck(variable);
  return link == MaxMinSolver::no_link ? none : component_links_[link];
}

}  // namespace stepcast::engine
