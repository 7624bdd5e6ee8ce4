// The channels that NCCL finds in one node: rings (one node), or paths from a NIC through all
// members and out by a NIC (several nodes), by backtracking over the wires with the bandwidth that
// is left on each. What NCCL's src/graph/search.cc does, read at v2.28.9-1; the code is our own.
//
//   several nodes, 4 GPUs with a NIC each:
//     same NIC, by PXN       nic0 > g0 g3 g2 g1 ~> nic0     g1 sends through g0, nic0's neighbour
//     crossing, in pairs     nic0 > g0 g3 g2 g1 > nic1      and the pair nic1 > g1 ... g0 > nic0,
//                                                           swapped on every other node
#pragma once

#include <cstdint>
#include <vector>

#include "engine/units.hpp"
#include "sim/network/search/wires.hpp"

namespace stepcast::sim {

/// One channel in one node. GPUs and NICs count within the node.
struct NodeChannel {
  std::vector<std::int64_t> gpus;          // in ring order; the first receives from the network
  std::int64_t nic_in = -1, nic_out = -1;  // -1 on a single node
  std::int64_t out_gpu = -1;               // beside nic_out; not the last GPU under PXN

  bool by_pxn() const { return nic_out >= 0 && out_gpu != gpus.back(); }

  friend bool operator==(const NodeChannel&, const NodeChannel&) = default;
};

/// What a search comes to. A wide channel is run as two of half its speed.
struct NodeChannels {
  std::vector<NodeChannel> rings;
  std::vector<NodeChannel> chains;  // of the trees: the first GPU of each is beside its NIC
  std::int64_t copies = 1;
  BytesPerSecond ring_speed{};   // of one copy, in the node and between nodes
  BytesPerSecond chain_speed{};  // in the node; between nodes ring_speed
  HopReach reach = HopReach::nvlink;
  bool crosses_nics = false;

  std::int64_t count() const { return static_cast<std::int64_t>(rings.size()) * copies; }
};

/// Members are GPUs of a node in ascending order, at least one; at least two on a single node.
NodeChannels search_channels(const topology::NodeSpec& node,
                             const std::vector<std::int64_t>& members, bool several_nodes);

/// Planned speed of each of so many NVLS heads.
BytesPerSecond nvls_head_speed(const topology::NodeSpec& node, std::int64_t heads);

}  // namespace stepcast::sim
