// PyTorch's caching allocator of CUDA memory, one stream: what it hands out, what it takes from the
// card, what it could not give back. Rules of c10/cuda/CUDACachingAllocator.cpp at 001074d2 (read
// 2026-11) without its options; it knows no other streams, whose blocks wait for events.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "workloads/memory/free_blocks.hpp"

namespace stepcast::workloads {

class CachingAllocator {
 public:
  using Id = FreeBlocks::Id;

  CachingAllocator() = default;
  /// On a card with so many bytes for it.
  explicit CachingAllocator(std::int64_t card) : card_(card) {}

  /// A block of at least `bytes`; the smallest free one that is large enough, else a new segment.
  Id allocate(std::int64_t bytes) {
    const auto id = allocate_in_room(bytes);
    return id ? *id : allocate_on_full(bytes);
  }
  /// The same where nothing has to be given back for it; else nothing changes.
  std::optional<Id> allocate_in_room(std::int64_t bytes);
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
  static constexpr Id none = MemoryBlock::none;
  struct Segment {
    std::int64_t bytes = 0;
    std::int64_t used_blocks = 0;
  };

  FreeBlocks& pool_of(bool small) { return small ? small_ : large_; }
  Id allocate_on_full(std::int64_t bytes);
  bool has_room(std::int64_t bytes);
  Id new_block(const MemoryBlock& block);
  Id new_segment(std::int64_t size);
  void use(Id block, std::int64_t size);
  void give_back(FreeBlocks& pool);
  void split(Id block, std::int64_t bytes);
  void join(Id block, Id next);

  std::vector<MemoryBlock> blocks_;
  std::vector<Id> unused_ids_;
  std::vector<Segment> segments_;
  FreeBlocks small_, large_;
  std::int64_t allocated_ = 0, reserved_ = 0, held_ = 0, next_address_ = 0;
  std::int64_t most_allocated_ = 0, most_held_ = 0;
  std::int64_t card_ = std::numeric_limits<std::int64_t>::max();
  Cards same_on_;
  bool failed_ = false;
};

}  // namespace stepcast::workloads
