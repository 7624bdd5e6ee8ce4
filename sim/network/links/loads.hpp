// Which links a collective loads, and how much: the bytes of every channel of its algorithm, hop by
// hop over the cluster's own links. Weights are bytes over the link per byte of Collective::bytes,
// rounded up to multiples of 1/1024 (2^-24 where the fabric sprays or hashes), so that sums of them
// are exact whatever their order.
//
//      node 0                 node 1                 node 2
//   g0 g1 g2 g3            g0 g1 g2 g3            g0 g1 g2 g3       a hop between GPUs: NVLink or
//    |  |  |  |             |  |  |  |             |  |  |  |       PCIe; from and to a NIC: PCIe
//   n0 n1 n2 n3 ---------> n0 n1 n2 n3 ---------> n0 n1 n2 n3 -> node 0
//        each channel its share of the bytes, over the router's way from NIC to NIC
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/network/links/hops.hpp"
#include "sim/network/model.hpp"
#include "sim/network/search/channels.hpp"

namespace stepcast::sim {

class LinkLoads {
 public:
  /// Both are borrowed.
  LinkLoads(const topology::Cluster& cluster, const topology::Router& router);

  /// Links in ascending order, each once. Ranks are GPU indexes, sender first for send_receive and
  /// root first for Broadcast and Reduce.
  std::vector<LinkLoad> of(const Delivery&, const std::vector<std::int64_t>& ranks) const;

  ChannelPlan plan(const std::vector<std::int64_t>& ranks) const { return planner_.plan(ranks); }

 private:
  using OnNode = ChannelPlan::OnNode;
  /// GPUs that speak to the network, by node of the group.
  using Heads = std::vector<std::vector<std::int64_t>>;
  Heads heads_by_member(const ChannelPlan&) const;
  Heads heads_by_channel(const ChannelPlan&) const;
  /// What the hops inside a node come to is the same on all nodes with the same members.
  void on_every_node(const ChannelPlan&, LinkLoadSum&,
                     const std::function<void(std::size_t at, LinkLoadSum&)>& fill) const;

  void add_ring(workloads::CollectiveKind, const ChannelPlan&, std::int64_t root,
                LinkLoadSum&) const;
  void add_ring_edge(const ChannelPlan&, std::size_t channel, std::size_t at, std::size_t place,
                     double weight, LinkLoadSum&) const;
  void leave_out(workloads::CollectiveKind, const ChannelPlan&, std::int64_t root, double weight,
                 LinkLoadSum&) const;
  void add_chains(const ChannelPlan&, LinkLoadSum&) const;
  void add_tree(const ChannelPlan&, LinkLoadSum&) const;
  void add_in_switches(workloads::CollectiveKind, const ChannelPlan&, LinkLoadSum&) const;
  void add_head_trees(const ChannelPlan&, LinkLoadSum&) const;
  void add_between_heads(const ChannelPlan&, std::size_t from, std::size_t to, std::size_t channel,
                         std::int64_t from_gpu, std::int64_t to_gpu, double weight,
                         LinkLoadSum&) const;
  void add_collnet_direct(workloads::CollectiveKind, const ChannelPlan&, LinkLoadSum&) const;
  void add_network_sum(workloads::CollectiveKind, const ChannelPlan&, const Heads& heads,
                       LinkLoadSum&) const;
  void add_pat(workloads::CollectiveKind, const ChannelPlan&, LinkLoadSum&) const;
  void add_all_pairs(const ChannelPlan&, LinkLoadSum&) const;
  /// Bytes between two nodes, by NIC of the first and of the second.
  using NicFlows = std::map<std::pair<std::int64_t, std::int64_t>, double>;
  void add_between_all_nodes(
      const ChannelPlan&, LinkLoadSum&,
      const std::function<NicFlows(const NodeGroup&, const NodeGroup&)>& flows_of) const;
  void add_copies(const ChannelPlan&, LinkLoadSum&) const;
  void add_tokens(const TokenCopies&, const ChannelPlan&, LinkLoadSum&) const;
  void add_pair(const std::vector<std::int64_t>& ranks, LinkLoadSum&) const;

  std::int64_t nic_of(std::int64_t gpu) const { return cluster_.nic_of_gpu(gpu); }

  const topology::Cluster& cluster_;
  const topology::Router& router_;
  LinkHops hops_;
  ChannelPlanner planner_;
  std::int64_t gpus_per_node_ = 1;
};

}  // namespace stepcast::sim
