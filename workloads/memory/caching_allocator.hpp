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

#include "workloads/memory/free_blocks.hpp"

namespace stepcast::workloads {

class CachingAllocator {
 public:
  using Id = FreeBlocks::Id;
  static constexpr Id none = MemoryBlock::none;

  CachingAllocator() = default;
  /// On a card with so many bytes for it. `expandable`: of each stream one segment of small and one
  /// of large blocks, which grow and shrink by pages.
  explicit CachingAllocator(std::int64_t card, bool expandable = false)
      : card_(card), expandable_(expandable) {}

  /// On a card that is never full.
  static CachingAllocator endless(bool expandable) {
    return CachingAllocator(std::numeric_limits<std::int64_t>::max(), expandable);
  }

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
  Id allocate_on_full(std::int64_t bytes, Stream stream);
  std::int64_t growth_for(std::int64_t bytes, Stream stream);
  Id grow(std::int64_t size, Stream stream);
  void give_back_all();
  void give_back_pages(Pool& pool);
  bool has_room(std::int64_t bytes);
  Id new_block(const MemoryBlock& block);
  Id new_segment(std::int64_t size, Stream stream);
  Id use_new(std::int64_t size, Stream stream);
  void use(Id block);
  void unite(Id block);
  void give_back(FreeBlocks& pool);
  Id take_front(Id block, std::int64_t bytes);

  std::vector<MemoryBlock> blocks_;
  std::vector<Id> unused_ids_;
  std::vector<Segment> segments_;
  std::array<Pool, 2 * num_streams> pools_;
  std::int64_t allocated_ = 0, reserved_ = 0, held_ = 0, next_address_ = 0;
  std::int64_t most_allocated_ = 0, most_held_ = 0;
  std::int64_t card_ = std::numeric_limits<std::int64_t>::max();
  Cards same_on_;
  bool failed_ = false, expandable_ = false;
};

}  // namespace stepcast::workloads
