// What the writer of a step remembers from call to call: visited, so that it can be compared
// between two micro-batches and carried over those in between.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stepcast::workloads {

/// An event between lanes, as engine numbers them.
using Event = std::uint32_t;

/// Reads the state, or moves it on: then events that went from `before` to now by `each` go on by
/// `more` times that; the others are of long ago, and stay.
class WriterState {
 public:
  WriterState() = default;
  WriterState(const WriterState& before, std::uint32_t each, std::uint32_t more)
      : before_(&before), each_(each), more_(more) {}

  void event(Event& e) {
    if (before_ != nullptr && e == before_->events_[events_.size()] + each_) e += more_ * each_;
    events_.push_back(e);
  }
  void event(std::optional<Event>& e) {
    value(e ? 1 : 0);
    if (e) event(*e);
  }
  template <class Events>
  void all(Events& events) {
    value(static_cast<std::int64_t>(events.size()));
    for (auto& e : events) event(e);
  }
  void value(std::int64_t v) { values_.push_back(v); }

  /// Whether this is `before` but for events, each the same or `each` later.
  bool follows(const WriterState& before, std::uint32_t each) const {
    if (values_ != before.values_ || events_.size() != before.events_.size()) return false;
    for (std::size_t i = 0; i < events_.size(); ++i)
      if (events_[i] != before.events_[i] && events_[i] != before.events_[i] + each) return false;
    return true;
  }

 private:
  const WriterState* before_ = nullptr;
  std::uint32_t each_ = 0, more_ = 0;
  std::vector<Event> events_;
  std::vector<std::int64_t> values_;
};

}  // namespace stepcast::workloads
