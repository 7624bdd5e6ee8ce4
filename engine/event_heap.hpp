// A priority queue of numbered things by (time, sequence), whose times may change where the heap
// knows their places: four children a node (LaMarca, Ladner 1996: half the levels of a binary heap,
// and a node's children share a cache line).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/check.hpp"
#include "engine/units.hpp"

namespace stepcast::engine {

struct Event {
  std::int64_t time_ps;
  std::uint32_t sequence;  // decides between equal times; unique
  std::uint32_t id;
};

/// Where in the heap each event is, by id.
class Places {
 public:
  void make_room(std::uint32_t id) {
    if (id >= place_.size()) place_.resize(id + 1);
  }
  void note(std::uint32_t id, std::size_t at) { place_[id] = static_cast<std::uint32_t>(at); }
  std::size_t of(std::uint32_t id) const { return place_[id]; }

 private:
  std::vector<std::uint32_t> place_;
};

/// For events that never move.
struct NoPlaces {
  void make_room(std::uint32_t) {}
  void note(std::uint32_t, std::size_t) {}
};

template <class PlacesOf>
class OrderedHeap {
 public:
  bool empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }
  const Event& top() const { return events_.front(); }
  const std::vector<Event>& events() const { return events_; }

  void push(Time time, std::uint32_t sequence, std::uint32_t id) {
    places_.make_room(id);
    events_.emplace_back();
    rise(events_.size() - 1, {time.time_since_epoch().count(), sequence, id});
  }

  void move(std::uint32_t id, Time time) {
    const std::size_t at = places_.of(id);
    Event event = events_[at];
    const std::int64_t time_ps = time.time_since_epoch().count();
    const bool earlier = time_ps < event.time_ps;
    event.time_ps = time_ps;
    if (earlier)
      rise(at, event);
    else
      sink(at, event);
  }

  /// All later by `by`.
  void shift(Duration by) {
    for (Event& event : events_) event.time_ps += by.count();
  }

  void pop() {
    const Event last = events_.back();
    events_.pop_back();
    if (!events_.empty()) sink(0, last);
  }

 private:
  static bool before(const Event& a, const Event& b) {
    return a.time_ps < b.time_ps || (a.time_ps == b.time_ps && a.sequence < b.sequence);
  }
  void place(std::size_t at, const Event& event) {
    events_[at] = event;
    places_.note(event.id, at);
  }
  /// Moves the hole at `at` towards the top until `event` fits.
  void rise(std::size_t at, Event event) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!before(event, events_[parent])) break;
      place(at, events_[parent]);
      at = parent;
    }
    place(at, event);
  }
  /// Moves the hole at `at` towards the leaves until `event` fits.
  void sink(std::size_t at, Event event) {
    const std::size_t size = events_.size();
    for (;;) {
      const std::size_t first = 4 * at + 1;
      if (first >= size) break;
      const std::size_t last = first + 4 < size ? first + 4 : size;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < last; ++child)
        if (before(events_[child], events_[least])) least = child;
      if (!before(events_[least], event)) break;
      place(at, events_[least]);
      at = least;
    }
    place(at, event);
  }

  std::vector<Event> events_;
  PlacesOf places_;
};

using EventHeap = OrderedHeap<Places>;

}  // namespace stepcast::engine
