// The allocations of a step, handed to PyTorch's allocator one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "workloads/memory/caching_allocator.hpp"
#include "workloads/memory/step_allocations.hpp"

namespace stepcast::workloads {

/// A copy goes on from where the original stands.
class Replay {
 public:
  /// On a card with so many bytes for them.
  Replay(const StepAllocations& allocations, std::int64_t card)
      : order_(allocations.order),
        allocator_(card, allocations.expandable),
        blocks_(allocations.tensors) {}

  bool ended() const { return next_ == order_.size(); }
  const CachingAllocator& allocator() const { return allocator_; }
  void move_to(std::int64_t card) { allocator_.move_to(card); }

  /// The next allocation.
  [[gnu::always_inline]] void step() {
    const Allocation& a = order_[next_++];
    if (a.bytes > 0)
      blocks_[a.tensor] = allocator_.allocate(a.bytes, a.stream);
    else
      allocator_.free(blocks_[a.tensor]);
  }

  /// Goes on to the end, or until the allocator has failed.
  void run();
  /// Goes on to the end, or until something would have to be given back for the next.
  void run_in_room();

 private:
  std::span<const Allocation> order_;
  CachingAllocator allocator_;
  std::vector<CachingAllocator::Id> blocks_;  // by tensor
  std::size_t next_ = 0;
};

/// `see(i, allocator)` after each of them, on a card that is never full.
template <class See>
void replay(const StepAllocations& allocations, See see) {
  Replay all(allocations, CachingAllocator::endless);
  for (std::size_t i = 0; !all.ended(); ++i) {
    all.step();
    see(i, all.allocator());
  }
}

}  // namespace stepcast::workloads
