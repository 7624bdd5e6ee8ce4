// The free blocks of a caching allocator, by size and then by address. A step has few sizes: each
// has a bin, which stays when it is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace stepcast::workloads {

class FreeBlocks {
 public:
  using Id = std::uint32_t;

  void insert(std::int64_t bytes, std::int64_t address, Id block);
  void erase(std::int64_t bytes, std::int64_t address);

  /// Takes out the smallest of at least `bytes`; of several, that with the lowest address.
  std::optional<Id> take(std::int64_t bytes);

  template <class Predicate>
  void erase_if(Predicate predicate) {
    for (Bin& bin : bins_)
      std::erase_if(bin.blocks, [&](const Entry& entry) { return predicate(entry.block); });
  }

 private:
  struct Entry {
    std::int64_t address = 0;
    Id block = 0;
  };
  struct Bin {
    std::int64_t bytes = 0;
    std::vector<Entry> blocks{};  // the lowest address last
  };

  std::size_t bin_from(std::int64_t bytes) const;

  std::vector<Bin> bins_;  // by size
};

}  // namespace stepcast::workloads
