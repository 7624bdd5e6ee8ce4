#include "workloads/memory/caching_allocator.hpp"

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

namespace stepcast::workloads {
namespace {

constexpr std::int64_t kib = 1024, mib = 1024 * kib;
constexpr std::int64_t least_block = 512;          // kMinBlockSize
constexpr std::int64_t largest_small = 1 * mib;    // kSmallSize
constexpr std::int64_t small_segment = 2 * mib;    // kSmallBuffer
constexpr std::int64_t medium_below = 10 * mib;    // kMinLargeAlloc
constexpr std::int64_t medium_segment = 20 * mib;  // kLargeBuffer
constexpr std::int64_t large_rounding = 2 * mib;   // kRoundLarge

std::int64_t rounded(std::int64_t bytes, std::int64_t to) {
  return std::max<std::int64_t>(1, ceil_div(bytes, to)) * to;
}

std::int64_t segment_for(std::int64_t bytes) {
  if (bytes <= largest_small) return small_segment;
  return bytes < medium_below ? medium_segment : rounded(bytes, large_rounding);
}

/// What is left of a small block is a block if anything is, of a large one if it is not small.
bool splits(bool small, std::int64_t left) {
  return small ? left >= least_block : left > largest_small;
}

}  // namespace

[[gnu::always_inline]] inline CachingAllocator::Id CachingAllocator::new_block(
    const MemoryBlock& block) {
  if (unused_ids_.empty()) {
    blocks_.push_back(block);
    return static_cast<Id>(blocks_.size() - 1);
  }
  const Id id = unused_ids_.back();
  unused_ids_.pop_back();
  blocks_[id] = block;
  return id;
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
  const std::size_t first = unused_ids_.size();
  pool.for_each(blocks_, [&](Id id) {
    if (blocks_[id].before == none && blocks_[id].after == none) unused_ids_.push_back(id);
  });
  for (std::size_t i = first; i < unused_ids_.size(); ++i) {
    reserved_ -= blocks_[unused_ids_[i]].bytes;
    pool.erase(blocks_, unused_ids_[i]);
  }
}

/// Takes the first `bytes` of a block for one of its own; what is left keeps its number.
[[gnu::always_inline]] inline CachingAllocator::Id CachingAllocator::take_front(
    Id block, std::int64_t bytes) {
  const MemoryBlock& whole = blocks_[block];
  const Id before = whole.before;
  const Id front = new_block({.address = whole.address,
                              .bytes = bytes,
                              .before = before,
                              .after = block,
                              .segment = whole.segment,
                              .stream = whole.stream,
                              .small = whole.small});
  if (before != none) blocks_[before].after = front;
  blocks_[block].before = front;
  return front;
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
    pool.free.erase(blocks_, last);
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
  pool.free.for_each(blocks_, [&](Id id) {
    const MemoryBlock& block = blocks_[id];
    const std::int64_t page = block.small ? small_segment : medium_segment;
    const std::int64_t first = ceil_div(block.address, page);
    const std::int64_t pages = (block.address + block.bytes) / page - first;
    if (pages <= 0) return;
    reserved_ -= pages * page;
    gone.push_back(id);
  });
  for (const Id id : gone) {
    pool.free.erase(blocks_, id);
    blocks_[id].used = true;
  }
}

void CachingAllocator::give_back_all() {
  for (Pool& pool : pools_) expandable_ ? give_back_pages(pool) : give_back(pool.free);
}

CachingAllocator::Id CachingAllocator::allocate_in_room(std::int64_t bytes, Stream stream) {
  expects(bytes >= 0, "a size");
  const std::int64_t size = rounded(bytes, least_block);
  FreeBlocks& pool = pool_of(size <= largest_small, stream).free;
  Id id = pool.find(blocks_, size);
  if (id == none) {
    if (reserved_ + growth_for(size, stream) > card_) return none;
    return use_new(size, stream);
  }
  const std::int64_t left = blocks_[id].bytes - size;
  if (splits(blocks_[id].small, left)) {
    const Id front = take_front(id, size);
    pool.change(blocks_, id, blocks_[id].address + size, left);
    id = front;
  } else {
    pool.erase(blocks_, id);
  }
  use(id);
  return id;
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
    pool_of(rest).free.insert(blocks_, id);
    id = front;
  }
  use(id);
  return id;
}

[[gnu::always_inline]] inline void CachingAllocator::use(Id id) {
  MemoryBlock& block = blocks_[id];
  block.used = true;
  if (!expandable_) {
    Segment& segment = segments_[block.segment];
    if (segment.used_blocks++ == 0) {
      held_ += segment.bytes;
      most_held_ = std::max(most_held_, held_);
    }
  }
  allocated_ += block.bytes;
  most_allocated_ = std::max(most_allocated_, allocated_);
}

void CachingAllocator::free(Id id) {
  expects(id < blocks_.size() && blocks_[id].used, "a block in use");
  blocks_[id].used = false;
  allocated_ -= blocks_[id].bytes;
  if (!expandable_) {
    Segment& segment = segments_[blocks_[id].segment];
    if (--segment.used_blocks == 0) held_ -= segment.bytes;
  }
  unite(id);
}

/// Makes a block that is no longer used free, one with its free neighbours.
[[gnu::always_inline]] inline void CachingAllocator::unite(Id id) {
  const MemoryBlock block = blocks_[id];
  Pool& pool = pool_of(block);
  const auto is_free = [&](Id other) { return other != none && !blocks_[other].used; };
  if (is_free(block.before)) {
    const MemoryBlock& before = blocks_[block.before];
    std::int64_t bytes = before.bytes + block.bytes;
    Id last = id;
    if (is_free(block.after)) {
      last = block.after;
      bytes += blocks_[last].bytes;
      pool.free.erase(blocks_, last);
      unused_ids_.push_back(last);
    }
    const Id after = blocks_[last].after;
    if (after != none) blocks_[after].before = block.before;
    blocks_[block.before].after = after;
    if (pool.last == last) pool.last = block.before;
    pool.free.change(blocks_, block.before, before.address, bytes);
    unused_ids_.push_back(id);
  } else if (is_free(block.after)) {
    if (block.before != none) blocks_[block.before].after = block.after;
    blocks_[block.after].before = block.before;
    pool.free.change(blocks_, block.after, block.address, block.bytes + blocks_[block.after].bytes);
    unused_ids_.push_back(id);
  } else {
    pool.free.insert(blocks_, id);
  }
}

void CachingAllocator::move_to(std::int64_t card) {
  expects(same_on_.enough <= card && card < same_on_.too_much, "a card where all is the same");
  card_ = card;
}

}  // namespace stepcast::workloads
