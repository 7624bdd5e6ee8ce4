// The allocations of a step, handed to PyTorch's allocator one by one.
#pragma once

#include <vector>

#include "workloads/memory/caching_allocator.hpp"
#include "workloads/memory/step_allocations.hpp"

namespace stepcast::workloads {

/// `see(i, allocator)` after each of them.
template <class See>
void replay(const StepAllocations& allocations, CachingAllocator allocator, See see) {
  std::vector<CachingAllocator::Id> blocks(allocations.tensors);
  for (std::size_t i = 0; i < allocations.order.size(); ++i) {
    const Allocation& a = allocations.order[i];
    if (a.bytes > 0)
      blocks[a.tensor] = allocator.allocate(a.bytes);
    else
      allocator.free(blocks[a.tensor]);
    see(i, allocator);
  }
}

}  // namespace stepcast::workloads
