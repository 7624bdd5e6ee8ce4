// PyTorch's caching allocator as its source reads, with one ordered set for each pool: slow, and
// what the fast one is held against.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

namespace stepcast::workloads::test {

namespace plain {

inline constexpr std::int64_t kib = 1024, mib = 1024 * kib;
inline constexpr std::int64_t least_block = 512;          // kMinBlockSize
inline constexpr std::int64_t largest_small = 1 * mib;    // kSmallSize
inline constexpr std::int64_t small_segment = 2 * mib;    // kSmallBuffer
inline constexpr std::int64_t medium_below = 10 * mib;    // kMinLargeAlloc
inline constexpr std::int64_t medium_segment = 20 * mib;  // kLargeBuffer
inline constexpr std::int64_t large_rounding = 2 * mib;   // kRoundLarge

inline std::int64_t rounded(std::int64_t bytes, std::int64_t to) {
  return std::max<std::int64_t>(1, ceil_div(bytes, to)) * to;
}

inline std::int64_t segment_for(std::int64_t bytes) {
  if (bytes <= largest_small) return small_segment;
  return bytes < medium_below ? medium_segment : rounded(bytes, large_rounding);
}

/// What is left of a small block is a block if anything is, of a large one if it is not small.
inline bool splits(bool small, std::int64_t left) {
  return small ? left >= least_block : left > largest_small;
}

}  // namespace plain

class PlainAllocator {
 public:
  using Id = std::uint32_t;

  PlainAllocator() = default;
  /// On a card with so many bytes for it.
  explicit PlainAllocator(std::int64_t card) : card_(card) {}

  /// A block of at least `bytes`; the smallest free one that is large enough, else a new segment.
  Id allocate(std::int64_t bytes);
  void free(Id block);

  /// Bytes of blocks in use, rounded to 512; of segments; of segments with a block in use, which
  /// cannot be given back.
  std::int64_t allocated() const { return allocated_; }
  std::int64_t reserved() const { return reserved_; }
  std::int64_t held() const { return held_; }
  /// A segment did not fit on the card although all that could be given back was.
  bool failed() const { return failed_; }

 private:
  static constexpr Id none = ~Id{0};
  struct Block {
    std::int64_t address = 0, bytes = 0;
    Id before = none, after = none;  // neighbours in the segment
    std::size_t segment = 0;
    bool used = false;
  };
  struct Segment {
    std::int64_t bytes = 0;
    std::int64_t used_blocks = 0;
    bool small = false;
  };
  struct Free {
    std::int64_t bytes, address;
    Id block;
    auto operator<=>(const Free&) const = default;
  };
  using Pool = std::set<Free>;

  Pool& pool_of(const Block& block) { return segments_[block.segment].small ? small_ : large_; }
  Id new_block(Block block);
  Id new_segment(std::int64_t bytes);
  void give_back(Pool& pool);
  void split(Id block, std::int64_t bytes);
  void join(Id block, Id next);

  std::vector<Block> blocks_;
  std::vector<Id> unused_ids_;
  std::vector<Segment> segments_;
  Pool small_, large_;
  std::int64_t allocated_ = 0, reserved_ = 0, held_ = 0, next_address_ = 0;
  std::int64_t card_ = std::numeric_limits<std::int64_t>::max();
  bool failed_ = false;
};

inline PlainAllocator::Id PlainAllocator::new_block(Block block) {
  if (unused_ids_.empty()) {
    blocks_.push_back(block);
    return static_cast<Id>(blocks_.size() - 1);
  }
  const Id id = unused_ids_.back();
  unused_ids_.pop_back();
  blocks_[id] = block;
  return id;
}

inline PlainAllocator::Id PlainAllocator::new_segment(std::int64_t bytes) {
  const std::int64_t size = plain::segment_for(bytes);
  if (reserved_ + size > card_) {
    give_back(small_);
    give_back(large_);
    failed_ = failed_ || reserved_ + size > card_;
  }
  segments_.push_back({.bytes = size, .used_blocks = 0, .small = bytes <= plain::largest_small});
  const Id id = new_block({.address = next_address_,
                           .bytes = size,
                           .before = none,
                           .after = none,
                           .segment = segments_.size() - 1,
                           .used = false});
  reserved_ += size;
  next_address_ += size;
  return id;
}

/// Segments that are one free block.
inline void PlainAllocator::give_back(Pool& pool) {
  for (auto at = pool.begin(); at != pool.end();) {
    const Block& block = blocks_[at->block];
    if (block.before != none || block.after != none) {
      ++at;
      continue;
    }
    reserved_ -= block.bytes;
    unused_ids_.push_back(at->block);
    at = pool.erase(at);
  }
}

inline void PlainAllocator::split(Id block, std::int64_t bytes) {
  const Block whole = blocks_[block];
  const Id rest = new_block({.address = whole.address + bytes,
                             .bytes = whole.bytes - bytes,
                             .before = block,
                             .after = whole.after,
                             .segment = whole.segment,
                             .used = false});
  if (whole.after != none) blocks_[whole.after].before = rest;
  blocks_[block].after = rest;
  blocks_[block].bytes = bytes;
  pool_of(whole).insert({blocks_[rest].bytes, blocks_[rest].address, rest});
}

/// `next` is free and follows `block`, whose entry in the pool is made later.
inline void PlainAllocator::join(Id block, Id next) {
  const Block gone = blocks_[next];
  blocks_[block].bytes += gone.bytes;
  blocks_[block].after = gone.after;
  if (gone.after != none) blocks_[gone.after].before = block;
  unused_ids_.push_back(next);
}

inline PlainAllocator::Id PlainAllocator::allocate(std::int64_t bytes) {
  expects(bytes >= 0, "a size");
  const std::int64_t size = plain::rounded(bytes, plain::least_block);
  Pool& pool = size <= plain::largest_small ? small_ : large_;
  const auto found = pool.lower_bound({size, 0, 0});
  Id id = none;
  if (found == pool.end()) {
    id = new_segment(size);
  } else {
    id = found->block;
    pool.erase(found);
  }
  if (plain::splits(segments_[blocks_[id].segment].small, blocks_[id].bytes - size))
    split(id, size);
  Block& block = blocks_[id];
  block.used = true;
  Segment& segment = segments_[block.segment];
  if (segment.used_blocks++ == 0) held_ += segment.bytes;
  allocated_ += block.bytes;
  return id;
}

inline void PlainAllocator::free(Id id) {
  expects(id < blocks_.size() && blocks_[id].used, "a block in use");
  blocks_[id].used = false;
  allocated_ -= blocks_[id].bytes;
  Segment& segment = segments_[blocks_[id].segment];
  if (--segment.used_blocks == 0) held_ -= segment.bytes;
  Pool& pool = pool_of(blocks_[id]);
  const auto take_out = [&](Id b) { pool.erase({blocks_[b].bytes, blocks_[b].address, b}); };
  if (const Id after = blocks_[id].after; after != none && !blocks_[after].used) {
    take_out(after);
    join(id, after);
  }
  if (const Id before = blocks_[id].before; before != none && !blocks_[before].used) {
    take_out(before);
    join(before, id);
    id = before;
  }
  pool.insert({blocks_[id].bytes, blocks_[id].address, id});
}

}  // namespace stepcast::workloads::test
