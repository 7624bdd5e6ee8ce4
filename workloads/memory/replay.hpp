// The allocations of a step, handed to PyTorch's allocator one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "workloads/memory/caching_allocator.hpp"
#include "workloads/memory/step_allocations.hpp"

namespace stepcast::workloads {

/// A copy goes on from where the original stands.
class Replay {
 public:
  Replay(const StepAllocations& allocations, CachingAllocator allocator)
      : order_(allocations.order), allocator_(std::move(allocator)), blocks_(allocations.tensors) {}

  bool ended() const { return next_ == order_.size(); }
  const CachingAllocator& allocator() const { return allocator_; }
  void move_to(std::int64_t card) { allocator_.move_to(card); }

  /// The next allocation.
  void step() {
    const Allocation& a = order_[next_++];
    if (a.bytes > 0)
      blocks_[a.tensor] = allocator_.allocate(a.bytes, a.stream);
    else
      allocator_.free(blocks_[a.tensor]);
  }

  /// The same where nothing has to be given back for it.
  bool step_in_room() {
    const Allocation& a = order_[next_];
    if (a.bytes == 0) return step(), true;
    const auto block = allocator_.allocate_in_room(a.bytes, a.stream);
    if (block == CachingAllocator::none) return false;
    blocks_[a.tensor] = block;
    ++next_;
    return true;
  }

 private:
  std::span<const Allocation> order_;
  CachingAllocator allocator_;
  std::vector<CachingAllocator::Id> blocks_;  // by tensor
  std::size_t next_ = 0;
};

/// `see(i, allocator)` after each of them, on a card that is never full.
template <class See>
void replay(const StepAllocations& allocations, See see) {
  Replay all(allocations, CachingAllocator::endless(allocations.expandable));
  for (std::size_t i = 0; !all.ended(); ++i) {
    all.step();
    see(i, all.allocator());
  }
}

}  // namespace stepcast::workloads
