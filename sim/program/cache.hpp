// A bounded store of values that are made once and shared by threads: what a session has read or
// built. Knows nothing of what it holds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace stepcast::sim {

/// The values of the `most` keys asked for last, found by ==. A value lives as long as anybody
/// holds it, so that one which the cache has dropped stays good for the thread that uses it: hence
/// shared pointers, to values that nobody changes.
template <class Key, class Value>
class Cache {
 public:
  using Shared = std::shared_ptr<const Value>;

  explicit Cache(std::size_t most) : most_(most) {}

  /// The value of `key`; make() is called where it is not there, by one thread while others that
  /// want the same key wait. What make() throws is thrown, and the next one tries again.
  template <class Make>
  Shared get(const Key& key, Make make) {
    const std::shared_ptr<Entry> entry = entry_of(key);
    const std::lock_guard lock(entry->making);
    if (!entry->value) entry->value = std::make_shared<const Value>(make());
    return entry->value;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    explicit Entry(Key k) : key(std::move(k)) {}
    const Key key;
    std::mutex making;
    Shared value;
  };

  /// Moves the entry to the front; the last one goes where there are too many.
  std::shared_ptr<Entry> entry_of(const Key& key) {
    const std::lock_guard lock(mutex_);
    auto found = std::find_if(entries_.begin(), entries_.end(),
                              [&](const auto& entry) { return entry->key == key; });
    if (found == entries_.end()) {
      if (entries_.size() >= most_) entries_.pop_back();
      found = entries_.insert(entries_.end(), std::make_shared<Entry>(key));
    }
    std::rotate(entries_.begin(), found, found + 1);
    return entries_.front();
  }

  std::size_t most_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;  // the last asked for first
};

}  // namespace stepcast::sim
