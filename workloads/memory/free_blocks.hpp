// The free blocks of a caching allocator in the order of their sizes, those of a size in that of
// their addresses: lists through the blocks, each of sizes within an eighth of each other.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stepcast::workloads {

/// A CUDA stream on which tensors are made.
enum class Stream : std::uint8_t { compute, gather, reduce };
inline constexpr std::size_t num_streams = 3;

struct MemoryBlock {
  using Id = std::uint32_t;
  static constexpr Id none = ~Id{0};

  std::int64_t address = 0, bytes = 0;
  Id before = none, after = none;  // neighbours in the segment
  std::uint32_t segment = 0;
  Stream stream{};         // whose pools it is of
  bool small : 1 = false;  // of the pool of small ones
  bool used : 1 = false;
  std::uint16_t list = 0;            // that a free one is in
  Id smaller = none, larger = none;  // of a free one, in a ring
};

/// Those of one pool, of blocks that lie elsewhere. Sizes are multiples of 512 bytes.
class FreeBlocks {
 public:
  using Id = MemoryBlock::Id;

  [[gnu::always_inline]] void insert(MemoryBlock* blocks, Id id) {
    insert(blocks, id, list_of(blocks[id].bytes));
  }

  [[gnu::always_inline]] void erase(MemoryBlock* blocks, Id id) {
    const MemoryBlock& block = blocks[id];
    List& list = lists_[block.list];
    if (block.larger == id) {
      list.smallest = MemoryBlock::none;
      filled_[block.list / word] &= ~bit(block.list);
      return;
    }
    blocks[block.smaller].larger = block.larger;
    blocks[block.larger].smaller = block.smaller;
    if (list.smallest == id) list.smallest = block.larger;
    if (list.near == id) list.near = block.larger;
  }

  /// Moves and resizes a free block.
  [[gnu::always_inline]] void change(MemoryBlock* blocks, Id id, std::int64_t address,
                                     std::int64_t bytes) {
    MemoryBlock& block = blocks[id];
    const std::size_t at = list_of(bytes);
    const bool alone = block.larger == id && block.list == at;
    if (!alone) erase(blocks, id);
    block.address = address;
    block.bytes = bytes;
    if (!alone) insert(blocks, id, at);
  }

  /// The smallest of at least `bytes`, of several that with the lowest address; or none.
  [[gnu::always_inline]] Id find(const MemoryBlock* blocks, std::int64_t bytes) const {
    const std::size_t at = list_of(bytes);
    const Id id = lists_[at].smallest;
    if (id == MemoryBlock::none) return smallest_from(at + 1);
    return blocks[id].bytes >= bytes ? id : find_larger(blocks, bytes, at);
  }

  /// In their order.
  template <class Visit>
  void for_each(const MemoryBlock* blocks, Visit visit) const {
    for (std::size_t at = filled_from(0); at < num_lists; at = filled_from(at + 1)) {
      Id id = lists_[at].smallest;
      do visit(id), id = blocks[id].larger;
      while (id != lists_[at].smallest);
    }
  }

 private:
  struct List {
    Id smallest = MemoryBlock::none;
    Id near = MemoryBlock::none;  // where one was put last: the next goes close by
  };
  static constexpr std::size_t word = 64, num_lists = 7 * word;  // of any int64

  /// The leading four bits of a size and how many follow them.
  static std::size_t list_of(std::int64_t bytes) {
    const auto units = static_cast<std::uint64_t>(bytes) / 512;
    const auto shift = static_cast<std::size_t>(std::bit_width(units | 8) - 4);
    return 8 * shift + (units >> shift);
  }
  static std::uint64_t bit(std::size_t list) { return std::uint64_t{1} << list % word; }
  static bool goes_before(const MemoryBlock& a, const MemoryBlock& b) {
    return a.bytes < b.bytes || (a.bytes == b.bytes && a.address < b.address);
  }

  [[gnu::always_inline]] void insert(MemoryBlock* blocks, Id id, std::size_t at) {
    MemoryBlock& block = blocks[id];
    List& list = lists_[at];
    block.list = static_cast<std::uint16_t>(at);
    if (list.smallest == MemoryBlock::none) {
      list.smallest = list.near = block.smaller = block.larger = id;
      filled_[at / word] |= bit(at);
      return;
    }
    // Most go to an end.
    Id next = list.smallest;
    if (goes_before(block, blocks[next]))
      list.smallest = id;
    else if (goes_before(block, blocks[blocks[next].smaller]))
      next = larger_than(blocks, block, list.near);
    block.larger = next;
    block.smaller = blocks[next].smaller;
    blocks[block.smaller].larger = blocks[next].smaller = id;
    list.near = id;
  }

  /// The first that `block` goes before, looked for from `near` on; there are smaller ones as well.
  static Id larger_than(const MemoryBlock* blocks, const MemoryBlock& block, Id near);
  /// find() where the smallest of list `at` is too small.
  Id find_larger(const MemoryBlock* blocks, std::int64_t bytes, std::size_t at) const;
  /// The first list from `list` on that is not empty, or their number.
  std::size_t filled_from(std::size_t list) const {
    std::size_t at = list / word;
    if (at == filled_.size()) return num_lists;
    std::uint64_t bits = filled_[at] & (~std::uint64_t{0} << list % word);
    while (bits == 0 && ++at < filled_.size()) bits = filled_[at];
    return bits == 0 ? num_lists : at * word + static_cast<std::size_t>(std::countr_zero(bits));
  }
  Id smallest_from(std::size_t list) const {
    const std::size_t at = filled_from(list);
    return at == num_lists ? MemoryBlock::none : lists_[at].smallest;
  }

  std::array<List, num_lists> lists_{};
  std::array<std::uint64_t, num_lists / word> filled_{};  // a bit for each list
};

}  // namespace stepcast::workloads
