#include "calibrate/session/task_collectives.hpp"

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/files/collective_words.hpp"

namespace stepcast::calibrate {
namespace {

using workloads::CollectiveKind;

/// Each rank's part is whole fp32 numbers.
std::int64_t divisible(CollectiveKind kind, std::int64_t bytes, std::int64_t ranks) {
  const bool parted = kind == CollectiveKind::all_gather ||
                      kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all;
  const std::int64_t unit = 4 * (parted ? ranks : 1);
  return std::max<std::int64_t>(1, ceil_div(bytes, unit)) * unit;
}

}  // namespace

std::vector<CollectiveTask> CollectiveSizes::tasks(std::int64_t ranks) const {
  std::vector<CollectiveTask> out;
  for (const auto& [kind, sizes] : sizes_) {
    std::set<std::int64_t> all;
    for (const std::int64_t bytes : sizes) all.insert(divisible(kind, bytes, ranks));
    const std::int64_t smallest = *all.begin(), largest = *all.rbegin();
    for (std::int64_t bytes = smallest; bytes < largest; bytes *= 4)
      all.insert(divisible(kind, bytes, ranks));
    if (all.size() < 3 || largest < 4 * smallest)
      for (const std::int64_t bytes : {smallest / 4, largest * 2, largest * 4})
        all.insert(divisible(kind, bytes, ranks));
    for (const std::int64_t bytes : all) out.push_back({sim::row_word(kind), Bytes(bytes), {}, {}});
  }
  return out;
}

std::vector<CollectiveTask> CollectiveSizes::largest(std::int64_t ranks) const {
  std::vector<CollectiveTask> out;
  for (const auto& [kind, sizes] : sizes_)
    out.push_back({sim::row_word(kind), Bytes(divisible(kind, *sizes.rbegin(), ranks)), {}, {}});
  return out;
}

std::vector<Bytes> copy_sizes() {
  std::vector<Bytes> sizes;
  for (std::int64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 4) sizes.emplace_back(bytes);
  return sizes;
}

}  // namespace stepcast::calibrate
