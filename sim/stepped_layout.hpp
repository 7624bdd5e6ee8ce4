// Where the members of a group lie, rail by rail, and which links bytes take between any two of
// them. Rings and trees are laid over it in stepped_expansion.hpp.
//
//      node 0                      node 1
//      g0 ─ g1 ─ g2 ─ g3 ──┐   ┌── g0 ─ g1 ─ g2 ─ g3      ring of rail 0: from the rail's member
//      │                   │   │                         round the node, out by the rail's NIC
//      NIC 0 <─────────────┘   └── NIC 0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/stepped_transfers.hpp"
#include "topology/cluster.hpp"
#include "topology/router.hpp"

namespace stepcast::sim {

class SteppedLayout {
 public:
  /// Ranks are GPU indexes; they are taken in ascending order. Cluster and router are borrowed.
  SteppedLayout(const topology::Cluster&, const topology::Router&, std::vector<std::int64_t> ranks);

  using Loads = std::vector<engine::LinkLoad>;

  std::size_t num_ranks() const { return ranks_.size(); }
  std::size_t num_nodes() const { return nodes_.size(); }
  const std::vector<std::int64_t>& ranks() const { return ranks_; }
  /// NICs that every node offers to its members; 1 on a single node.
  std::size_t num_rails() const { return num_rails_; }
  std::size_t node_of(std::int64_t gpu) const;
  /// The members of a node, beginning with the one that is closest to the rail's NIC.
  std::vector<std::int64_t> members(std::size_t node, std::size_t rail) const;
  /// All ranks, node after node.
  std::vector<std::int64_t> ring(std::size_t rail) const;
  bool same_node(std::int64_t a, std::int64_t b) const;

  /// Every byte from a to b: over all NVLinks to the switches inside a node; between nodes by the
  /// rail's NICs, and to and from these over NVLink (NCCL's PXN) where there is a switch.
  Loads between(std::int64_t a, std::int64_t b, std::size_t rail) const;
  /// As a message that NCCL sends by the NICs of its own two ends.
  Loads direct(std::int64_t a, std::int64_t b) const;
  /// Every byte of a sum in the NVSwitch: out of all members, into the head; and its way back.
  Loads into_switch(std::size_t node, std::int64_t head) const;
  Loads out_of_switch(std::size_t node, std::int64_t head) const;

  /// All NVLinks of one GPU, one direction.
  BytesPerSecond port() const;
  /// The rail of the NIC that is closest to this member.
  std::size_t rail_of(std::int64_t gpu) const;

 private:
  struct OnNode {
    std::int64_t node = 0;
    std::vector<std::int64_t> members;
    std::vector<std::int64_t> speakers;  // by rail
  };
  std::int64_t in_node(std::int64_t gpu) const { return gpu % gpus_per_node_; }
  void find_speakers(OnNode&) const;
  void add_path(topology::DeviceId from, topology::DeviceId to, std::uint64_t key, Loads&) const;
  void add_port(const std::vector<topology::LinkId>& links, Loads&) const;
  void add_inside(std::int64_t a, std::int64_t b, std::size_t rail, Loads&) const;

  const topology::Cluster& cluster_;
  const topology::Router& router_;
  std::int64_t gpus_per_node_;
  std::vector<std::int64_t> ranks_;
  std::vector<OnNode> nodes_;
  std::size_t num_rails_ = 1;
};

}  // namespace stepcast::sim
