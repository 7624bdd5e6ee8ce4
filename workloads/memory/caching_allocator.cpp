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

CachingAllocator::Id CachingAllocator::new_block(Block block) {
  if (unused_ids_.empty()) {
    blocks_.push_back(block);
    return static_cast<Id>(blocks_.size() - 1);
  }
  const Id id = unused_ids_.back();
  unused_ids_.pop_back();
  blocks_[id] = block;
  return id;
}

CachingAllocator::Id CachingAllocator::new_segment(std::int64_t bytes) {
  const std::int64_t size = segment_for(bytes);
  if (reserved_ + size > card_) {
    give_back(small_);
    give_back(large_);
    failed_ = failed_ || reserved_ + size > card_;
  }
  segments_.push_back({.bytes = size, .used_blocks = 0, .small = bytes <= largest_small});
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
void CachingAllocator::give_back(Pool& pool) {
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

void CachingAllocator::split(Id block, std::int64_t bytes) {
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
void CachingAllocator::join(Id block, Id next) {
  const Block gone = blocks_[next];
  blocks_[block].bytes += gone.bytes;
  blocks_[block].after = gone.after;
  if (gone.after != none) blocks_[gone.after].before = block;
  unused_ids_.push_back(next);
}

CachingAllocator::Id CachingAllocator::allocate(std::int64_t bytes) {
  expects(bytes >= 0, "a size");
  const std::int64_t size = rounded(bytes, least_block);
  Pool& pool = size <= largest_small ? small_ : large_;
  const auto found = pool.lower_bound({size, 0, 0});
  Id id = none;
  if (found == pool.end()) {
    id = new_segment(size);
  } else {
    id = found->block;
    pool.erase(found);
  }
  if (splits(segments_[blocks_[id].segment].small, blocks_[id].bytes - size)) split(id, size);
  Block& block = blocks_[id];
  block.used = true;
  Segment& segment = segments_[block.segment];
  if (segment.used_blocks++ == 0) held_ += segment.bytes;
  allocated_ += block.bytes;
  return id;
}

void CachingAllocator::free(Id id) {
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

}  // namespace stepcast::workloads
