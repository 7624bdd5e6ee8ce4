#include "engine/max_min.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::engine {

Quanta to_quanta(BytesPerSecond rate) {
  expects(rate.value >= 0, "a rate is not negative");
  const double q = rate.value * quanta_per_byte_per_second;
  return q >= static_cast<double>(fastest_rate) ? fastest_rate : static_cast<Quanta>(q);
}

Quanta capacity_to_quanta(BytesPerSecond capacity) {
  const double q = capacity.value * quanta_per_byte_per_second;
  expects(q >= 1 && q < 0x1p62, "a link's capacity is between 1/64 and 2^56 bytes/s");
  return static_cast<Quanta>(q);
}

Quanta share(Wide room, FixedWeight weight) {
  const double guess = static_cast<double>(room) / static_cast<double>(weight);
  if (guess >= static_cast<double>(fastest_rate)) return fastest_rate;
  // The quotient of doubles is off by a few units at most; the rest is exact.
  Quanta rate = static_cast<Quanta>(guess);
  Wide left = room - static_cast<Wide>(rate) * weight;
  for (; left < 0; left += weight) --rate;
  for (; left >= weight; left -= weight) ++rate;
  return rate;
}

void MaxMinSolver::clear() {
  links_.clear();
  variables_.clear();
  loads_.clear();
}

std::uint32_t MaxMinSolver::add_room(Wide room) {
  links_.push_back({room, 0, 0, 0});
  return static_cast<std::uint32_t>(links_.size() - 1);
}

std::uint32_t MaxMinSolver::add_variable(Quanta cap) {
  variables_.push_back({cap, 0, static_cast<std::uint32_t>(loads_.size()), no_link, false});
  return static_cast<std::uint32_t>(variables_.size() - 1);
}

void MaxMinSolver::solve() {
  num_active_ = variables_.size();
  variables_.push_back(
      {0, 0, static_cast<std::uint32_t>(loads_.size()), no_link, true});  // ends the last
  index_users();
  start_levels();
  while (num_active_ > 0) {
    const Quanta level = refresh_lowest_level() ? levels_.front().value : fastest_rate;
    if (!caps_.empty() && caps_.front().value <= level)
      freeze_capped_at(level);
    else
      freeze_links_at(level);
  }
  variables_.pop_back();
}

/// Counts, then places: the users of a link lie side by side.
void MaxMinSolver::index_users() {
  for (const Load& load : loads_) ++links_[load.link].num_users;
  std::uint32_t offset = 0;
  for (ActiveLink& link : links_) {
    link.first_user = offset;
    offset += link.num_users;
    link.num_users = 0;
  }
  users_.resize(loads_.size());
  for (std::uint32_t v = 0; v + 1 < variables_.size(); ++v)
    for (std::uint32_t i = variables_[v].first_load; i < variables_[v + 1].first_load; ++i) {
      ActiveLink& link = links_[loads_[i].link];
      users_[link.first_user + link.num_users++] = v;
      link.weight += loads_[i].weight;
    }
}

void MaxMinSolver::start_levels() {
  levels_.clear();
  for (std::uint32_t l = 0; l < links_.size(); ++l)
    if (links_[l].num_users > 0) levels_.push_back({share(links_[l].room, links_[l].weight), l});
  std::make_heap(levels_.begin(), levels_.end());
  caps_.clear();
  for (std::uint32_t v = 0; v + 1 < variables_.size(); ++v) caps_.push_back({variables_[v].cap, v});
  std::make_heap(caps_.begin(), caps_.end());
}

/// A link's level only rises while others freeze at or below it, so the heap may hold old levels as
/// long as the one on top is looked at again. False when no link has an active variable.
bool MaxMinSolver::refresh_lowest_level() {
  while (!levels_.empty()) {
    const Key top = levels_.front();
    const ActiveLink& link = links_[top.index];
    const Quanta level = link.weight == 0 ? top.value : share(link.room, link.weight);
    if (link.weight > 0 && level == top.value) return true;
    std::pop_heap(levels_.begin(), levels_.end());
    if (link.weight == 0) {
      levels_.pop_back();
    } else {
      levels_.back().value = level;
      std::push_heap(levels_.begin(), levels_.end());
    }
  }
  return false;
}

void MaxMinSolver::freeze(std::uint32_t variable, Quanta rate, std::uint32_t bottleneck) {
  ActiveVariable& v = variables_[variable];
  if (v.frozen) return;
  v.frozen = true;
  v.rate = rate;
  v.bottleneck = bottleneck;
  --num_active_;
  for (std::uint32_t i = v.first_load; i < variables_[variable + 1].first_load; ++i) {
    ActiveLink& link = links_[loads_[i].link];
    link.room -= static_cast<Wide>(loads_[i].weight) * rate;
    link.weight -= loads_[i].weight;
  }
}

void MaxMinSolver::freeze_capped_at(Quanta level) {
  while (!caps_.empty() && caps_.front().value <= level) {
    freeze(caps_.front().index, caps_.front().value, no_link);
    std::pop_heap(caps_.begin(), caps_.end());
    caps_.pop_back();
  }
}

/// All links at the level are found before any variable freezes: rounding down leaves a remainder
/// on each, and who gets it must not depend on which of them is looked at first.
void MaxMinSolver::freeze_links_at(Quanta level) {
  tied_.clear();
  while (refresh_lowest_level() && levels_.front().value == level) {
    tied_.push_back(levels_.front().index);
    std::pop_heap(levels_.begin(), levels_.end());
    levels_.pop_back();
  }
  for (std::uint32_t l : tied_)
    for (std::uint32_t i = 0; i < links_[l].num_users; ++i)
      freeze(users_[links_[l].first_user + i], level, l);
}

std::vector<BytesPerSecond> max_min(std::span<const BytesPerSecond> capacities,
                                    std::span<const Variable> variables) {
  MaxMinSolver solver;
  for (BytesPerSecond c : capacities) solver.add_link(capacity_to_quanta(c));
  for (const Variable& v : variables) {
    solver.add_variable(to_quanta(v.cap));
    for (const LinkLoad& load : v.loads) {
      expects(load.link < capacities.size(), "a load names a link that exists");
      expects(to_fixed(load.weight) > 0 && load.weight < 0x1p20, "a weight is positive");
      solver.add_load(load.link, to_fixed(load.weight));
    }
  }
  solver.solve();
  std::vector<BytesPerSecond> rates;
  for (std::uint32_t v = 0; v < variables.size(); ++v) rates.push_back(to_rate(solver.rate(v)));
  return rates;
}

}  // namespace stepcast::engine
