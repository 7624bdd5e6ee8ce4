#include "workloads/memory/free_blocks.hpp"

#include <algorithm>

namespace stepcast::workloads {

/// The first bin of at least `bytes`.
std::size_t FreeBlocks::bin_from(std::int64_t bytes) const {
  const auto at = std::ranges::lower_bound(bins_, bytes, {}, &Bin::bytes);
  return static_cast<std::size_t>(at - bins_.begin());
}

void FreeBlocks::insert(std::int64_t bytes, std::int64_t address, Id block) {
  const std::size_t place = bin_from(bytes);
  if (place == bins_.size() || bins_[place].bytes != bytes)
    bins_.insert(bins_.begin() + static_cast<std::ptrdiff_t>(place), Bin{bytes});
  std::vector<Entry>& blocks = bins_[place].blocks;
  const auto at = std::ranges::lower_bound(blocks, address, std::greater(), &Entry::address);
  blocks.insert(at, {address, block});
}

void FreeBlocks::erase(std::int64_t bytes, std::int64_t address) {
  std::vector<Entry>& blocks = bins_[bin_from(bytes)].blocks;
  blocks.erase(std::ranges::lower_bound(blocks, address, std::greater(), &Entry::address));
}

std::optional<FreeBlocks::Id> FreeBlocks::take(std::int64_t bytes) {
  std::size_t place = bin_from(bytes);
  while (place < bins_.size() && bins_[place].blocks.empty()) ++place;
  if (place == bins_.size()) return std::nullopt;
  const Id block = bins_[place].blocks.back().block;
  bins_[place].blocks.pop_back();
  return block;
}

}  // namespace stepcast::workloads
