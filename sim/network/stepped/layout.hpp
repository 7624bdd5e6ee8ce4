// Which links bytes take between any two members of a group, over NCCL's channels as its search
// lays them (sim/network/search/channels.hpp). Rings and trees are written out over it in
// expansion.hpp. Ranks are GPU indexes of the cluster, nodes count within the group.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/links/hops.hpp"
#include "sim/network/search/channels.hpp"
#include "sim/network/stepped/transfers.hpp"

namespace stepcast::sim {

class SteppedLayout {
 public:
  /// Ranks in any order, at least two. Cluster and router are borrowed.
  SteppedLayout(const topology::Cluster&, const topology::Router&, std::vector<std::int64_t> ranks);

  /// Of every byte; a link may come twice.
  using Loads = std::vector<engine::LinkLoad>;

  std::size_t num_ranks() const { return ranks_.size(); }
  std::size_t num_nodes() const { return plan_.nodes().size(); }
  /// Searched channels, of which each stands for the equal ones that NCCL runs beside it.
  std::size_t num_channels() const { return plan_.num_channels(); }
  /// Members that have a tree of their own under NVLSTree.
  std::size_t num_heads() const;
  const std::vector<std::int64_t>& ranks() const { return ranks_; }  // ascending
  std::vector<std::int64_t> members(std::size_t node) const;
  std::size_t node_of(std::int64_t gpu) const;
  bool same_node(std::int64_t a, std::int64_t b) const;

  std::vector<std::int64_t> ring(std::size_t channel) const { return plan_.ring(channel); }
  /// From ring(channel)[place] to the next one.
  Loads ring_edge(std::size_t channel, std::size_t place) const;
  /// The chain of a channel's trees; its first member is beside the NIC.
  std::vector<std::int64_t> chain(std::size_t node, std::size_t channel) const;
  /// Two members of a node.
  Loads inside(std::int64_t a, std::int64_t b) const;
  /// Heads of trees on two nodes, each by its own NIC. `key` tells the flows of a pair apart.
  Loads between_heads(std::int64_t a, std::int64_t b, std::uint64_t key) const;
  /// A message of AlltoAll: under NVSwitches it leaves by the receiver's rail (PXN).
  Loads between_peers(std::int64_t a, std::int64_t b) const;
  /// Send/receive.
  Loads between_pair(std::int64_t a, std::int64_t b) const;
  /// Every byte of a sum in the NVSwitch: out of all members, into the head; and its way back.
  Loads into_switch(std::size_t node, std::int64_t head) const;
  Loads out_of_switch(std::size_t node, std::int64_t head) const;
  /// All NVLinks of one GPU, one direction.
  BytesPerSecond port() const;

 private:
  std::int64_t in_node(std::int64_t gpu) const { return gpu % gpus_per_node_; }
  std::int64_t nic_of(std::int64_t gpu) const { return cluster_.nic_of_gpu(in_node(gpu)); }
  NodeNic own_nic(std::int64_t gpu) const { return {gpu / gpus_per_node_, nic_of(gpu)}; }
  void add_ring_exit(std::size_t node, std::size_t channel, LinkLoadSum&) const;

  const topology::Cluster& cluster_;
  LinkHops hops_;
  ChannelPlanner planner_;
  std::int64_t gpus_per_node_;
  std::vector<std::int64_t> ranks_;
  ChannelPlan plan_;
};

}  // namespace stepcast::sim
