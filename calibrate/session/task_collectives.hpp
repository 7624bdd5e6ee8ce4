// The collectives to measure: sizes that steps use, and enough around them for a curve. Knows no
// device.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "calibrate/device/device.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::calibrate {

class CollectiveSizes {
 public:
  void add(workloads::CollectiveKind kind, Bytes bytes) { sizes_[kind].insert(bytes.value); }
  void add_all(const CollectiveSizes& more) {
    for (const auto& [kind, sizes] : more.sizes_) sizes_[kind].insert(sizes.begin(), sizes.end());
  }

  /// The sizes, and a ladder of factor four over them that is a curve even of a single size: the
  /// simulator takes three sizes over a factor of four for one
  /// (sim/network/nccl/collective_curves.cpp).
  std::vector<CollectiveTask> tasks(std::int64_t ranks) const;
  /// The largest of each kind.
  std::vector<CollectiveTask> largest(std::int64_t ranks) const;

 private:
  std::map<workloads::CollectiveKind, std::set<std::int64_t>> sizes_;
};

/// Copies that show cache, memory and what lies between: 1 MiB to 1 GiB.
std::vector<Bytes> copy_sizes();

}  // namespace stepcast::calibrate
