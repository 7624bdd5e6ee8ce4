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
  const auto low = static_cast<std::int64_t>(room & 0xff'ffff'ffff);
  const double whole = static_cast<double>(static_cast<std::int64_t>(room >> 40)) * 0x1p40;
  const double guess = (whole + static_cast<double>(low)) / static_cast<double>(weight);
  if (guess >= static_cast<double>(fastest_rate)) return fastest_rate;
  // The quotient of doubles is off by a few units at most; the rest is exact.
  Quanta rate = static_cast<Quanta>(guess);
  Wide left = room - static_cast<Wide>(rate) * weight;
  for (; left < 0; left += weight) --rate;
  for (; left >= weight; left -= weight) ++rate;
  return rate;
}

namespace {

/// Progressive filling. Add all links, then each variable followed by its loads.
class Filling {
 public:
  void add_link(Quanta capacity) { links_.push_back({widen(capacity), 0, 0, 0}); }
  void add_variable(Quanta cap) {
    variables_.push_back({cap, 0, static_cast<std::uint32_t>(loads_.size()), false});
  }
  /// Loads the variable added last.
  void add_load(std::uint32_t link, FixedWeight weight) { loads_.push_back({link, weight}); }
  void solve();
  Quanta rate(std::uint32_t variable) const { return variables_[variable].rate; }

 private:
  struct Load {
    std::uint32_t link;
    FixedWeight weight;
  };
  struct ActiveVariable {
    Quanta cap;
    Quanta rate;
    std::uint32_t first_load;
    bool frozen;
  };
  struct ActiveLink {
    Wide room;           // capacity minus what frozen variables use
    FixedWeight weight;  // of the variables not frozen
    std::uint32_t first_user, num_users;
  };
  struct Key {  // in a heap with the smallest value on top
    Quanta value;
    std::uint32_t index;
    friend bool operator<(const Key& a, const Key& b) { return a.value > b.value; }
  };

  void index_users();
  void start_levels();
  bool refresh_lowest_level();
  void freeze(std::uint32_t variable, Quanta rate);
  void freeze_capped_at(Quanta level);
  void freeze_links_at(Quanta level);

  std::vector<ActiveLink> links_;
  std::vector<ActiveVariable> variables_;
  std::vector<Load> loads_;           // by variable
  std::vector<std::uint32_t> users_;  // variables, by link
  std::vector<Key> levels_, caps_;    // heaps; a level in the heap is never above the true one
  std::vector<std::uint32_t> tied_;
  std::size_t num_active_ = 0;
};

void Filling::solve() {
  num_active_ = variables_.size();
  variables_.push_back({0, 0, static_cast<std::uint32_t>(loads_.size()), true});  // ends the last
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
void Filling::index_users() {
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

void Filling::start_levels() {
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
bool Filling::refresh_lowest_level() {
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

void Filling::freeze(std::uint32_t variable, Quanta rate) {
  ActiveVariable& v = variables_[variable];
  if (v.frozen) return;
  v.frozen = true;
  v.rate = rate;
  --num_active_;
  for (std::uint32_t i = v.first_load; i < variables_[variable + 1].first_load; ++i) {
    ActiveLink& link = links_[loads_[i].link];
    link.room -= static_cast<Wide>(loads_[i].weight) * rate;
    link.weight -= loads_[i].weight;
  }
}

void Filling::freeze_capped_at(Quanta level) {
  while (!caps_.empty() && caps_.front().value <= level) {
    freeze(caps_.front().index, caps_.front().value);
    std::pop_heap(caps_.begin(), caps_.end());
    caps_.pop_back();
  }
}

/// All links at the level are found before any variable freezes: rounding down leaves a remainder
/// on each, and who gets it must not depend on which of them is looked at first.
void Filling::freeze_links_at(Quanta level) {
  tied_.clear();
  while (refresh_lowest_level() && levels_.front().value == level) {
    tied_.push_back(levels_.front().index);
    std::pop_heap(levels_.begin(), levels_.end());
    levels_.pop_back();
  }
  for (std::uint32_t l : tied_)
    for (std::uint32_t i = 0; i < links_[l].num_users; ++i)
      freeze(users_[links_[l].first_user + i], level);
}

}  // namespace

std::vector<BytesPerSecond> max_min(std::span<const BytesPerSecond> capacities,
                                    std::span<const Variable> variables) {
  Filling filling;
  for (BytesPerSecond c : capacities) filling.add_link(capacity_to_quanta(c));
  for (const Variable& v : variables) {
    filling.add_variable(to_quanta(v.cap));
    for (const LinkLoad& load : v.loads) {
      expects(load.link < capacities.size(), "a load names a link that exists");
      expects(to_fixed(load.weight) > 0 && load.weight < 0x1p20, "a weight is positive");
      filling.add_load(load.link, to_fixed(load.weight));
    }
  }
  filling.solve();
  std::vector<BytesPerSecond> rates;
  for (std::uint32_t v = 0; v < variables.size(); ++v) rates.push_back(to_rate(filling.rate(v)));
  return rates;
}

}  // namespace stepcast::engine
