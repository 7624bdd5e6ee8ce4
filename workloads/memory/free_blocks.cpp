#include "workloads/memory/free_blocks.hpp"

namespace stepcast::workloads {

FreeBlocks::Id FreeBlocks::larger_than(const MemoryBlock* blocks, const MemoryBlock& block,
                                       Id near) {
  while (goes_before(block, blocks[near])) near = blocks[near].smaller;
  while (!goes_before(block, blocks[near])) near = blocks[near].larger;
  return near;
}

FreeBlocks::Id FreeBlocks::find_larger(const MemoryBlock* blocks, std::int64_t bytes,
                                       std::size_t at) const {
  Id id = lists_[at].smallest;
  if (blocks[blocks[id].smaller].bytes < bytes) return smallest_from(at + 1);
  while (blocks[id].bytes < bytes) id = blocks[id].larger;
  return id;
}

}  // namespace stepcast::workloads
