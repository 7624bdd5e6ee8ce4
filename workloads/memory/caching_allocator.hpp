// PyTorch's caching allocator of CUDA memory: what it hands out, what it takes from the card, what
// it could not give back. Rules of c10/cuda/CUDACachingAllocator.cpp at 001074d2 (read 2026-11), of
// its options expandable_segments alone; blocks of a stream are free for it at once, and never for
// another.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "workloads/memory/free_blocks.hpp"

namespace stepcast::workloads {

class CachingAllocator {
 public:
  using Id = FreeBlocks::Id;
  static constexpr Id none = MemoryBlock::none;
  /// A card that is never full.
  static constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max() - 1;

  CachingAllocator() = default;
  /// On a card with so many bytes for it. `expandable`: of each stream one segment of small and one
  /// of large blocks, which grow and shrink by pages.
  explicit CachingAllocator(std::int64_t card, bool expandable = false)
      : card_(card), expandable_(expandable) {}

  /// A block of at least `bytes`; the smallest free one that is large enough, else a new segment.
  Id allocate(std::int64_t bytes, Stream stream = {}) {
    const Id id = allocate_in_room(bytes, stream);
    return id == none ? allocate_on_full(bytes, stream) : id;
  }
  /// The same where nothing has to be given back for it; else nothing changes and there is none.
  Id allocate_in_room(std::int64_t bytes, Stream stream = {});
  void free(Id block);

  /// Goes on with another card, on which all would have been the same so far.
  void move_to(std::int64_t card);

  /// Bytes of blocks in use, rounded to 512; of segments; of segments with a block in use, which
  /// cannot be given back.
  std::int64_t allocated() const { return allocated_; }
  std::int64_t reserved() const { return reserved_; }
  std::int64_t held() const { return held_; }
  /// The most of either so far.
  std::int64_t most_allocated() const { return most_allocated_; }
  std::int64_t most_held() const { return most_held_; }
  /// A segment did not fit on the card although all that could be given back was.
  bool failed() const { return failed_; }
  /// All has been the same as it would be on any card from `enough` on, below `too_much`, up to the
  /// first failure.
  struct Cards {
    std::int64_t enough = 0, too_much = std::numeric_limits<std::int64_t>::max();
  };
  const Cards& same_on() const { return same_on_; }

 private:
  static constexpr std::int64_t least_block = 512;        // kMinBlockSize
  static constexpr std::int64_t largest_small = 1 << 20;  // kSmallSize

  struct Segment {
    std::int64_t bytes = 0;
    std::int64_t used_blocks = 0;
  };

  /// Blocks of a stream, small or large, and where they are expandable the last one's number.
  struct Pool {
    FreeBlocks free;
    Id last = none;
  };
  Pool& pool_of(bool small, Stream stream) {
    return pools_[2 * static_cast<std::size_t>(stream) + (small ? 1 : 0)];
  }
  Pool& pool_of(const MemoryBlock& block) { return pool_of(block.small, block.stream); }
  static std::int64_t rounded(std::int64_t bytes, std::int64_t to) {
    return std::max<std::int64_t>(1, ceil_div(bytes, to)) * to;
  }
  /// What is left of a small block is a block if anything is, of a large one if it is not small.
  static bool splits(bool small, std::int64_t left) {
    return small ? left >= least_block : left > largest_small;
  }
  static std::int64_t segment_for(std::int64_t bytes);
  Id allocate_on_full(std::int64_t bytes, Stream stream);
  /// A block of `size` from a new segment, or none where the card has no room for it.
  Id grow_in_room(std::int64_t size, Stream stream);
  std::int64_t growth_for(std::int64_t bytes, Stream stream);
  Id grow(std::int64_t size, Stream stream);
  void give_back_all();
  void give_back_pages(Pool& pool);
  bool has_room(std::int64_t bytes);
  Id new_block(const MemoryBlock& block);
  Id add_block(const MemoryBlock& block);
  void retire(Id block);
  Id new_segment(std::int64_t size, Stream stream);
  Id use_new(std::int64_t size, Stream stream);
  void use(Id block);
  void unite(Id block);
  void give_back(FreeBlocks& pool);
  Id take_front(Id block, std::int64_t bytes);

  std::vector<MemoryBlock> blocks_;
  std::vector<Segment> segments_;
  std::array<Pool, 2 * num_streams> pools_;
  Id unused_ = none;  // the first of the numbers that no block has; the next is its `larger`
  std::int64_t allocated_ = 0, reserved_ = 0, held_ = 0, next_address_ = 0;
  std::int64_t most_allocated_ = 0, most_held_ = 0;
  std::int64_t card_ = endless;
  Cards same_on_;
  bool failed_ = false, expandable_ = false;
};

// What every step of a replay does is inline: ten thousands of them are asked for.

[[gnu::always_inline]] inline CachingAllocator::Id CachingAllocator::new_block(
    const MemoryBlock& block) {
  if (unused_ == none) return add_block(block);
  const Id id = unused_;
  unused_ = blocks_[id].larger;
  blocks_[id] = block;
  return id;
}

[[gnu::always_inline]] inline void CachingAllocator::retire(Id id) {
  blocks_[id].larger = unused_;
  unused_ = id;
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

[[gnu::always_inline]] inline CachingAllocator::Id CachingAllocator::allocate_in_room(
    std::int64_t bytes, Stream stream) {
  expects(bytes >= 0, "a size");
  const std::int64_t size = rounded(bytes, least_block);
  FreeBlocks& pool = pool_of(size <= largest_small, stream).free;
  Id id = pool.find(blocks_.data(), size);
  if (id == none) return grow_in_room(size, stream);
  const std::int64_t left = blocks_[id].bytes - size;
  if (splits(blocks_[id].small, left)) {
    const Id front = take_front(id, size);
    pool.change(blocks_.data(), id, blocks_[id].address + size, left);
    id = front;
  } else {
    pool.erase(blocks_.data(), id);
  }
  use(id);
  return id;
}

[[gnu::always_inline]] inline void CachingAllocator::free(Id id) {
  expects(id < blocks_.size() && blocks_[id].used, "a block in use");
  MemoryBlock& block = blocks_[id];
  block.used = false;
  allocated_ -= block.bytes;
  if (!expandable_) {
    Segment& segment = segments_[block.segment];
    if (--segment.used_blocks == 0) held_ -= segment.bytes;
  }
  unite(id);
}

/// Makes a block that is no longer used free, one with its free neighbours.
[[gnu::always_inline]] inline void CachingAllocator::unite(Id id) {
  MemoryBlock* const blocks = blocks_.data();
  const MemoryBlock& block = blocks[id];
  Pool& pool = pool_of(block);
  const auto is_free = [&](Id other) { return other != none && !blocks[other].used; };
  const Id before = block.before, after = block.after;
  if (is_free(before)) {
    std::int64_t bytes = blocks[before].bytes + block.bytes;
    Id last = id;
    if (is_free(after)) {
      last = after;
      bytes += blocks[last].bytes;
      pool.free.erase(blocks, last);
      retire(last);
    }
    const Id next = blocks[last].after;
    if (next != none) blocks[next].before = before;
    blocks[before].after = next;
    if (pool.last == last) pool.last = before;
    pool.free.change(blocks, before, blocks[before].address, bytes);
    retire(id);
  } else if (is_free(after)) {
    if (before != none) blocks[before].after = after;
    blocks[after].before = before;
    pool.free.change(blocks, after, block.address, block.bytes + blocks[after].bytes);
    retire(id);
  } else {
    pool.free.insert(blocks, id);
  }
}

}  // namespace stepcast::workloads
