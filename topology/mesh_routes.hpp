// Shortest NVLink routes between the GPUs of a node without NVSwitches, as one flat (CSR) table.
// In DGX-1V every pair is one or two hops apart; a route of two hops passes a third GPU.
#pragma once

#include <span>
#include <vector>

#include "topology/node_layout.hpp"

namespace stepcast::topology {

class MeshRoutes {
 public:
  MeshRoutes() = default;
  MeshRoutes(const NodeLayout& layout, std::int64_t gpus);

  /// Links (local to the node) of one of the shortest routes that is widest among them; the key
  /// picks when several are. Empty when no NVLinks lead there.
  std::span<const LinkId> route(DeviceId from, DeviceId to, std::uint64_t key) const;

 private:
  std::size_t gpus_ = 0;
  std::vector<std::uint32_t> first_;   // of pair from * gpus + to, into links_
  std::vector<std::uint32_t> length_;  // links of one route of the pair
  std::vector<LinkId> links_;          // routes of a pair one after the other
};

}  // namespace stepcast::topology
