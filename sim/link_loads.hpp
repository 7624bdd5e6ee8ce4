// Which links a collective over a group of GPUs loads, and how much: the symmetric picture of
// NCCL's channels. Weights are bytes over the link per byte of Collective::bytes, rounded up to
// multiples of 1/1024 (2^-24 where packets are sprayed), so that sums of them are exact whatever
// their order.
//
// Inside a node every member's NVLink port carries the ring; between nodes each rail of the group
// (a NIC that a member is closest to) carries an equal share from node to node, ring order being
// the order in which the ranks meet the nodes:
//
//      node 0                 node 1                 node 2
//   g0 g1 g2 g3            g0 g1 g2 g3            g0 g1 g2 g3       NVLink port: (p-1)/p of the
//   ring,
//    |  |  |  |             |  |  |  |             |  |  |  |       all of it on one node
//   n0 n1 n2 n3 ---------> n0 n1 n2 n3 ---------> n0 n1 n2 n3 -> node 0
//        each rail: 1 / rails of the ring, over the router's path
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network_model.hpp"

namespace stepcast::sim {

class LinkLoads {
 public:
  /// Both are borrowed.
  LinkLoads(const topology::Cluster& cluster, const topology::Router& router);

  /// Links in ascending order, each once. Ranks are GPU indexes, sender first for send_receive.
  std::vector<LinkLoad> of(workloads::CollectiveKind, const std::vector<std::int64_t>& ranks) const;

 private:
  struct Group;
  struct Flow;
  Group group_of(const std::vector<std::int64_t>& ranks) const;
  Flow flow_of(workloads::CollectiveKind, const Group&) const;
  void add_port(std::int64_t gpu, double weight, std::vector<LinkLoad>&) const;
  void add_mesh(const std::int64_t* members, std::int64_t count, double weight,
                std::vector<LinkLoad>&) const;
  void add_path(std::int64_t from, std::int64_t to, double weight, std::uint64_t key,
                std::vector<LinkLoad>&) const;
  void add_inside(const Group&, double weight, std::vector<LinkLoad>&) const;
  void add_rails(const Group&, double weight, std::vector<LinkLoad>&) const;
  void add_all_pairs(const Group&, std::vector<LinkLoad>&) const;
  void add_pair(const std::vector<std::int64_t>& ranks, std::vector<LinkLoad>&) const;

  const topology::Cluster& cluster_;
  const topology::Router& router_;
  topology::LinkId links_per_node_ = 0;
  std::int64_t gpus_per_node_ = 1;
  /// NVLinks out of GPU g of node 0 with their share of the port; other nodes are copies of it.
  struct PortLink {
    topology::LinkId link = 0;
    std::int64_t peer = -1;  // GPU in the node that it leads to; -1 for an NVSwitch
    double share = 0.0;
  };
  std::vector<std::vector<PortLink>> ports_;
};

}  // namespace stepcast::sim
