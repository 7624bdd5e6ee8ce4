// One entry of a stage's schedule, and orders of them that a file lists.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stepcast::workloads {

/// A backward computes both gradients; zero-bubble schedules (arXiv 2401.10241) compute that of the
/// input first, for which the stage before waits, and those of the weights later.
enum class Pass : std::uint8_t { forward, backward, input_gradient, weight_gradient };

/// A micro-batch through one of the stage's model chunks.
struct Turn {
  Pass pass{};
  std::int64_t micro_batch = 0;
  std::int64_t chunk = 0;
  bool paired = false;  // runs together with the turn after it
  friend bool operator==(const Turn&, const Turn&) = default;
};

/// Where the parts of the model lie on the stages of a pipeline. Looped: part k on stage k % p.
/// Folded: stage r has the parts r and 2p-1-r. Mirrored: stage r has part r of one copy of the
/// model and part p-1-r of another, whose micro-batches run the other way.
enum class Placement : std::uint8_t { looped, folded, mirrored };

/// The turns of every stage, as a file has them.
struct ListedOrders {
  std::string file;
  Placement placement = Placement::looped;
  std::int64_t chunks = 1;  // of a stage
  std::int64_t micro_batches = 0;
  std::vector<std::vector<Turn>> stages;
  friend bool operator==(const ListedOrders&, const ListedOrders&) = default;
};

/// Shared between the copies of a plan; equal where the orders are.
struct SharedOrders {
  std::shared_ptr<const ListedOrders> list;
  friend bool operator==(const SharedOrders& a, const SharedOrders& b) {
    return a.list == b.list || (a.list && b.list && *a.list == *b.list);
  }
};

}  // namespace stepcast::workloads
