#include "workloads/memory/free_blocks.hpp"

#include <algorithm>
#include <bit>

namespace stepcast::workloads {
namespace {

constexpr std::size_t word = 64;

/// The leading six bits of a size and how many follow them.
std::size_t list_of(std::int64_t bytes) {
  const auto units = static_cast<std::uint64_t>(bytes) / 512;
  const auto length = static_cast<std::size_t>(std::bit_width(units));
  const std::size_t shift = length > 6 ? length - 6 : 0;
  return 32 * shift + (units >> shift);
}

bool goes_before(const MemoryBlock& a, const MemoryBlock& b) {
  return a.bytes < b.bytes || (a.bytes == b.bytes && a.address < b.address);
}

}  // namespace

std::size_t FreeBlocks::filled_from(std::size_t list) const {
  std::size_t at = list / word;
  if (at >= filled_.size()) return lists_.size();
  std::uint64_t bits = filled_[at] & (~std::uint64_t{0} << list % word);
  while (bits == 0 && ++at < filled_.size()) bits = filled_[at];
  if (bits == 0) return lists_.size();
  return at * word + static_cast<std::size_t>(std::countr_zero(bits));
}

void FreeBlocks::insert(Blocks& blocks, Id id) {
  MemoryBlock& block = blocks[id];
  const std::size_t at = list_of(block.bytes);
  if (at >= lists_.size()) {
    filled_.resize(at / word + 1);
    lists_.resize(filled_.size() * word);
  }
  List& list = lists_[at];
  if (list.smallest == MemoryBlock::none) {
    list.smallest = list.near = block.smaller = block.larger = id;
    filled_[at / word] |= std::uint64_t{1} << at % word;
    return;
  }
  Id next = list.smallest;
  const bool first = goes_before(block, blocks[next]);
  if (!first && goes_before(block, blocks[blocks[next].smaller])) {
    next = list.near;
    while (goes_before(block, blocks[next])) next = blocks[next].smaller;
    while (!goes_before(block, blocks[next])) next = blocks[next].larger;
  }
  block.larger = next;
  block.smaller = blocks[next].smaller;
  blocks[block.smaller].larger = blocks[next].smaller = id;
  list.near = id;
  if (first) list.smallest = id;
}

void FreeBlocks::erase(Blocks& blocks, Id id) {
  const MemoryBlock& block = blocks[id];
  const std::size_t at = list_of(block.bytes);
  List& list = lists_[at];
  if (block.larger == id) {
    list.smallest = MemoryBlock::none;
    filled_[at / word] &= ~(std::uint64_t{1} << at % word);
    return;
  }
  blocks[block.smaller].larger = block.larger;
  blocks[block.larger].smaller = block.smaller;
  if (list.smallest == id) list.smallest = block.larger;
  if (list.near == id) list.near = block.larger;
}

FreeBlocks::Id FreeBlocks::find(const Blocks& blocks, std::int64_t bytes) const {
  std::size_t at = filled_from(list_of(bytes));
  if (at == lists_.size()) return MemoryBlock::none;
  Id id = lists_[at].smallest;
  if (blocks[blocks[id].smaller].bytes < bytes) {  // the largest of this list is too small
    at = filled_from(at + 1);
    return at == lists_.size() ? MemoryBlock::none : lists_[at].smallest;
  }
  while (blocks[id].bytes < bytes) id = blocks[id].larger;
  return id;
}

}  // namespace stepcast::workloads
