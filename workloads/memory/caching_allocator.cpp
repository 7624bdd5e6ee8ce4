#include "workloads/memory/caching_allocator.hpp"

#include <algorithm>

namespace stepcast::workloads {
namespace {

constexpr std::int64_t mib = 1024 * 1024;
constexpr std::int64_t small_segment = 2 * mib;    // kSmallBuffer
constexpr std::int64_t medium_below = 10 * mib;    // kMinLargeAlloc
constexpr std::int64_t medium_segment = 20 * mib;  // kLargeBuffer
constexpr std::int64_t large_rounding = 2 * mib;   // kRoundLarge

}  // namespace

std::int64_t CachingAllocator::segment_for(std::int64_t bytes) {
  if (bytes <= largest_small) return small_segment;
  return bytes < medium_below ? medium_segment : rounded(bytes, large_rounding);
}

CachingAllocator::Id CachingAllocator::add_block(const MemoryBlock& block) {
  blocks_.push_back(block);
  return static_cast<Id>(blocks_.size() - 1);
}

CachingAllocator::Id CachingAllocator::new_segment(std::int64_t size, Stream stream) {
  if (expandable_) return grow(size, stream);
  const std::int64_t bytes = segment_for(size);
  segments_.push_back({.bytes = bytes, .used_blocks = 0});
  const Id id = new_block({.address = next_address_,
                           .bytes = bytes,
                           .before = none,
                           .after = none,
                           .segment = static_cast<std::uint32_t>(segments_.size() - 1),
                           .stream = stream,
                           .small = size <= largest_small});
  reserved_ += bytes;
  next_address_ += bytes;
  if (!failed_) same_on_.enough = std::max(same_on_.enough, reserved_);
  return id;
}

bool CachingAllocator::has_room(std::int64_t bytes) {
  if (reserved_ + bytes <= card_) return true;
  same_on_.too_much = std::min(same_on_.too_much, reserved_ + bytes);
  return false;
}

/// Segments that are one free block.
void CachingAllocator::give_back(FreeBlocks& pool) {
  std::vector<Id> whole;
  pool.for_each(blocks_.data(), [&](Id id) {
    if (blocks_[id].before == none && blocks_[id].after == none) whole.push_back(id);
  });
  for (const Id id : whole) {
    reserved_ -= blocks_[id].bytes;
    pool.erase(blocks_.data(), id);
    retire(id);
  }
}

/// What a new segment, or a grown one, takes from the card.
std::int64_t CachingAllocator::growth_for(std::int64_t bytes, Stream stream) {
  if (!expandable_) return segment_for(bytes);
  const bool small = bytes <= largest_small;
  const Id last = pool_of(small, stream).last;
  const std::int64_t there = last != none && !blocks_[last].used ? blocks_[last].bytes : 0;
  return rounded(bytes - there, small ? small_segment : medium_segment);
}

/// At the end of the stream's address range; what was free there becomes part of the block.
CachingAllocator::Id CachingAllocator::grow(std::int64_t size, Stream stream) {
  Pool& pool = pool_of(size <= largest_small, stream);
  const std::int64_t bytes = growth_for(size, stream);
  reserved_ += bytes;
  held_ = std::max(held_, reserved_);
  most_held_ = std::max(most_held_, held_);
  if (!failed_) same_on_.enough = std::max(same_on_.enough, reserved_);
  const Id last = pool.last;
  if (last != none && !blocks_[last].used) {
    pool.free.erase(blocks_.data(), last);
    blocks_[last].bytes += bytes;
    return last;
  }
  const std::int64_t end = last == none ? 0 : blocks_[last].address + blocks_[last].bytes;
  const Id id = new_block({.address = end,
                           .bytes = bytes,
                           .before = last,
                           .after = none,
                           .stream = stream,
                           .small = size <= largest_small});
  if (last != none) blocks_[last].after = id;
  return pool.last = id;
}

/// Whole pages within free blocks; what is left of such a block is used by nobody.
void CachingAllocator::give_back_pages(Pool& pool) {
  std::vector<Id> gone;
  pool.free.for_each(blocks_.data(), [&](Id id) {
    const MemoryBlock& block = blocks_[id];
    const std::int64_t page = block.small ? small_segment : medium_segment;
    const std::int64_t first = ceil_div(block.address, page);
    const std::int64_t pages = (block.address + block.bytes) / page - first;
    if (pages <= 0) return;
    reserved_ -= pages * page;
    gone.push_back(id);
  });
  for (const Id id : gone) {
    pool.free.erase(blocks_.data(), id);
    blocks_[id].used = true;
  }
}

void CachingAllocator::give_back_all() {
  for (Pool& pool : pools_) expandable_ ? give_back_pages(pool) : give_back(pool.free);
}

CachingAllocator::Id CachingAllocator::grow_in_room(std::int64_t size, Stream stream) {
  return reserved_ + growth_for(size, stream) > card_ ? none : use_new(size, stream);
}

/// Where blocks have to be given back, if any can.
CachingAllocator::Id CachingAllocator::allocate_on_full(std::int64_t bytes, Stream stream) {
  const std::int64_t size = rounded(bytes, least_block);
  if (!has_room(growth_for(size, stream))) {
    give_back_all();
    failed_ = !has_room(growth_for(size, stream)) || failed_;
  }
  return use_new(size, stream);
}

/// Of a new segment, what is left of which is free.
CachingAllocator::Id CachingAllocator::use_new(std::int64_t size, Stream stream) {
  Id id = new_segment(size, stream);
  if (splits(blocks_[id].small, blocks_[id].bytes - size)) {
    const Id front = take_front(id, size);
    MemoryBlock& rest = blocks_[id];
    rest.address += size;
    rest.bytes -= size;
    pool_of(rest).free.insert(blocks_.data(), id);
    id = front;
  }
  use(id);
  return id;
}

void CachingAllocator::move_to(std::int64_t card) {
  expects(same_on_.enough <= card && card < same_on_.too_much, "a card where all is the same");
  card_ = card;
}

}  // namespace stepcast::workloads
