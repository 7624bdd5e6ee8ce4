// When the events of every rank happened, in the step under way and the one before: lanes of a rank
// are at most one step apart. Private to engine.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/units.hpp"

namespace stepcast::engine {

class EventTable {
 public:
  EventTable() = default;
  explicit EventTable(const std::vector<std::uint32_t>& events_of_ranks) {
    std::size_t first = 0;
    for (const std::uint32_t events : events_of_ranks) {
      places_.push_back({first, events});
      first += std::size_t{2} * events;
    }
    times_.resize(first);
    steps_.resize(first);
  }

  bool is_set(std::uint32_t rank, std::uint32_t event, std::uint32_t step) const {
    return steps_[index(rank, event, step)] == tag_of(step);
  }
  Time time(std::uint32_t rank, std::uint32_t event, std::uint32_t step) const {
    return times_[index(rank, event, step)];
  }
  void set(std::uint32_t rank, std::uint32_t event, std::uint32_t step, Time when) {
    const std::size_t e = index(rank, event, step);
    times_[e] = when;
    steps_[e] = tag_of(step);
  }
  /// Event `to` is what `from` is, later by `by`.
  void repeat(std::uint32_t rank, std::uint32_t from, std::uint32_t to, std::uint32_t step,
              Duration by) {
    const std::size_t source = index(rank, from, step), target = index(rank, to, step);
    times_[target] = times_[source] + by;
    steps_[target] = steps_[source];
  }

 private:
  struct Place {
    std::size_t first = 0;
    std::uint32_t events = 0;
  };
  /// Never 0, which is no step. What a place held before is of two steps ago, or of few more.
  static std::uint16_t tag_of(std::uint32_t step) {
    return static_cast<std::uint16_t>(step % 0xffff + 1);
  }
  /// Events of a step lie side by side.
  std::size_t index(std::uint32_t rank, std::uint32_t event, std::uint32_t step) const {
    const Place& place = places_[rank];
    return place.first + (step & 1U) * std::size_t{place.events} + event;
  }

  std::vector<Place> places_;  // by rank
  std::vector<Time> times_;
  std::vector<std::uint16_t> steps_;  // the tag of that in which the event was last recorded
};

}  // namespace stepcast::engine
