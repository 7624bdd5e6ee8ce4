#include "workloads/memory/free_blocks.hpp"

namespace stepcast::workloads {

FreeBlocks::Id FreeBlocks::larger_than(const Blocks& blocks, const MemoryBlock& block, Id near) {
  while (goes_before(block, blocks[near])) near = blocks[near].smaller;
  while (!goes_before(block, blocks[near])) near = blocks[near].larger;
  return near;
}

std::size_t FreeBlocks::filled_from(std::size_t list) const {
  std::size_t at = list / word;
  if (at == filled_.size()) return num_lists;
  std::uint64_t bits = filled_[at] & (~std::uint64_t{0} << list % word);
  while (bits == 0 && ++at < filled_.size()) bits = filled_[at];
  if (bits == 0) return num_lists;
  return at * word + static_cast<std::size_t>(std::countr_zero(bits));
}

FreeBlocks::Id FreeBlocks::find_larger(const Blocks& blocks, std::int64_t bytes,
                                       std::size_t at) const {
  Id id = lists_[at].smallest;
  if (id != MemoryBlock::none && blocks[blocks[id].smaller].bytes >= bytes) {
    while (blocks[id].bytes < bytes) id = blocks[id].larger;
    return id;
  }
  at = filled_from(at + 1);
  return at == num_lists ? MemoryBlock::none : lists_[at].smallest;
}

}  // namespace stepcast::workloads
