// The free blocks of a caching allocator in the order of their sizes, those of a size in that of
// their addresses: lists through the blocks, each of sizes within a thirty-second of each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast::workloads {

struct MemoryBlock {
  using Id = std::uint32_t;
  static constexpr Id none = ~Id{0};

  std::int64_t address = 0, bytes = 0;
  Id before = none, after = none;  // neighbours in the segment
  std::uint32_t segment = 0;
  bool used = false;
  Id smaller = none, larger = none;  // of a free one, in a ring
};

/// Those of one pool, of blocks that lie elsewhere. Sizes are multiples of 512 bytes.
class FreeBlocks {
 public:
  using Id = MemoryBlock::Id;
  using Blocks = std::vector<MemoryBlock>;

  void insert(Blocks& blocks, Id id);
  void erase(Blocks& blocks, Id id);

  /// The smallest of at least `bytes`, of several that with the lowest address; or none.
  Id find(const Blocks& blocks, std::int64_t bytes) const;

  /// In their order.
  template <class Visit>
  void for_each(const Blocks& blocks, Visit visit) const {
    for (std::size_t list = filled_from(0); list < lists_.size(); list = filled_from(list + 1)) {
      Id id = lists_[list].smallest;
      do visit(id), id = blocks[id].larger;
      while (id != lists_[list].smallest);
    }
  }

 private:
  struct List {
    Id smallest = MemoryBlock::none;
    Id near = MemoryBlock::none;  // where one was put last: the next goes close by
  };

  /// The first list from `list` on that is not empty, or their number.
  std::size_t filled_from(std::size_t list) const;

  std::vector<List> lists_;
  std::vector<std::uint64_t> filled_;  // a bit for each list
};

}  // namespace stepcast::workloads
