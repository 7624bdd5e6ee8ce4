#include "workloads/memory/replay.hpp"

namespace stepcast::workloads {

void Replay::run() {
  while (!ended() && !allocator_.failed()) step();
}

void Replay::run_in_room() {
  for (; !ended(); ++next_) {
    const Allocation& a = order_[next_];
    if (a.bytes == 0) {
      allocator_.free(blocks_[a.tensor]);
      continue;
    }
    const CachingAllocator::Id block = allocator_.allocate_in_room(a.bytes, a.stream);
    if (block == CachingAllocator::none) return;
    blocks_[a.tensor] = block;
  }
}

}  // namespace stepcast::workloads
