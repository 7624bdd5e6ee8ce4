// The ordered queue: a 4-ary heap of (time, sequence). Entries of the same instant leave in the
// order in which they came. Stale entries are the caller's business (a version in the entry).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/units.hpp"

namespace stepcast::engine {

class TimeQueue {
 public:
  struct Entry {
    Time time;
    std::uint32_t sequence = 0;
    std::uint32_t id = 0;
    std::uint32_t version = 0;
  };

  bool empty() const { return heap_.empty(); }
  const Entry& top() const { return heap_.front(); }
  std::int64_t pushed() const { return pushed_; }

  void push(Time time, std::uint32_t id, std::uint32_t version) {
    ++pushed_;
    Entry entry{time, next_sequence_++, id, version};
    std::size_t i = heap_.size();
    heap_.push_back(entry);
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!before(entry, heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = entry;
  }

  void pop() {
    const Entry last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) {
      next_sequence_ = 0;
      return;
    }
    std::size_t i = 0;
    while (true) {
      const std::size_t first = 4 * i + 1;
      if (first >= heap_.size()) break;
      const std::size_t end = first + 4 < heap_.size() ? first + 4 : heap_.size();
      std::size_t least = first;
      for (std::size_t c = first + 1; c < end; ++c)
        if (before(heap_[c], heap_[least])) least = c;
      if (!before(heap_[least], last)) break;
      heap_[i] = heap_[least];
      i = least;
    }
    heap_[i] = last;
  }

 private:
  static bool before(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time < b.time : a.sequence < b.sequence;
  }
  std::vector<Entry> heap_;
  std::uint32_t next_sequence_ = 0;
  std::int64_t pushed_ = 0;
};

}  // namespace stepcast::engine
