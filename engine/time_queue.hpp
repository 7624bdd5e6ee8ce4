// The ordered queue of instants. Ranks in lock step post thousands of entries for the same instant,
// so entries are kept in buckets, one per instant, and only buckets are ordered. Entries of an
// instant leave in the order in which they came. Stale entries are the caller's business (a version
// in the entry).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/check.hpp"
#include "engine/event_heap.hpp"
#include "engine/units.hpp"

namespace stepcast::engine {

class TimeQueue {
 public:
  struct Entry {
    std::uint32_t id = 0;
    std::uint32_t version = 0;
  };

  TimeQueue() { recent_.fill(none); }

  bool empty() const { return heap_.empty(); }
  Time next() const { return Time(Duration(heap_.top().time_ps)); }
  std::int64_t pushed() const { return pushed_; }

  void push(Time time, std::uint32_t id, std::uint32_t version) {
    if (time.time_since_epoch().count() > last_instant_ps) throw BeyondClock("more than 53 days");
    ++pushed_;
    std::uint32_t& bucket = recent_[slot_of(time)];
    if (bucket == none || times_[bucket] != time) bucket = open(time);
    buckets_[bucket].push_back({id, version});
  }

  /// All later by `by`.
  void shift(Duration by) {
    heap_.shift(by);
    for (Time& time : times_) time += by;
    recent_.fill(none);
  }

  /// Removes the entries of the earliest instant and appends them to `out`. Instants pushed again
  /// later come again.
  void take(std::vector<Entry>& out) {
    const Time now = next();
    while (!heap_.empty() && next() == now) {
      const std::uint32_t bucket = heap_.top().id;
      heap_.pop();
      out.insert(out.end(), buckets_[bucket].begin(), buckets_[bucket].end());
      buckets_[bucket].clear();
      free_.push_back(bucket);
      std::uint32_t& recent = recent_[slot_of(now)];
      if (recent == bucket) recent = none;
    }
    if (heap_.empty()) sequence_ = 0;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  static std::size_t slot_of(Time time) {
    const auto t = static_cast<std::uint64_t>(time.time_since_epoch().count());
    return (t * 0x9e3779b97f4a7c15U) >> 56;
  }

  std::uint32_t open(Time time) {
    std::uint32_t bucket = static_cast<std::uint32_t>(buckets_.size());
    if (free_.empty()) {
      buckets_.emplace_back();
      times_.emplace_back();
    } else {
      bucket = free_.back();
      free_.pop_back();
    }
    times_[bucket] = time;
    heap_.push(time, sequence_++, bucket);
    return bucket;
  }

  OrderedHeap<NoPlaces> heap_;  // of buckets
  std::vector<std::vector<Entry>> buckets_;
  std::vector<Time> times_;                // of the buckets
  std::vector<std::uint32_t> free_;        // buckets
  std::array<std::uint32_t, 256> recent_;  // open bucket by hash of its time
  std::uint32_t sequence_ = 0;
  std::int64_t pushed_ = 0;
};

}  // namespace stepcast::engine
