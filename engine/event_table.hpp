// When the events of every rank happened, in the step under way and the one before: lanes of a rank
// are at most one step apart. Private to engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/units.hpp"

namespace stepcast::engine {

class EventTable {
 public:
  static constexpr Time unset = Time::min();

  EventTable() = default;
  explicit EventTable(const std::vector<std::uint32_t>& events_of_ranks) {
    std::size_t first = 0;
    for (const std::uint32_t events : events_of_ranks) {
      places_.push_back({first, events});
      first += std::size_t{2} * events;
    }
    times_.resize(first, unset);
  }

  bool is_set(std::uint32_t rank, std::uint32_t event, std::uint32_t step) const {
    return time(rank, event, step) != unset;
  }
  Time time(std::uint32_t rank, std::uint32_t event, std::uint32_t step) const {
    return times_[index(rank, event, step)];
  }
  void set(std::uint32_t rank, std::uint32_t event, std::uint32_t step, Time when) {
    times_[index(rank, event, step)] = when;
  }
  /// `step` begins: nobody asks for what happened two steps before any more.
  void clear(std::uint32_t rank, std::uint32_t step) {
    if (step < 2) return;
    const auto first = times_.begin() + static_cast<std::ptrdiff_t>(index(rank, 0, step));
    std::fill_n(first, places_[rank].events, unset);
  }
  /// Event `to` is what `from` is, later by `by`.
  void repeat(std::uint32_t rank, std::uint32_t from, std::uint32_t to, std::uint32_t step,
              Duration by) {
    const Time source = time(rank, from, step);
    set(rank, to, step, source == unset ? unset : source + by);
  }

 private:
  struct Place {
    std::size_t first = 0;
    std::uint32_t events = 0;
  };
  /// Events of a step lie side by side.
  std::size_t index(std::uint32_t rank, std::uint32_t event, std::uint32_t step) const {
    const Place& place = places_[rank];
    return place.first + (step & 1U) * std::size_t{place.events} + event;
  }

  std::vector<Place> places_;  // by rank
  std::vector<Time> times_;
};

}  // namespace stepcast::engine
