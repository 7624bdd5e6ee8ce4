// One hop of a channel on the links of the cluster: between GPUs of a node, from a GPU to a NIC,
// from NIC to NIC. GPUs and NICs count within their nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/links/load_sum.hpp"
#include "topology/cluster.hpp"
#include "topology/router.hpp"

namespace stepcast::sim {

struct NodeNic {
  std::int64_t node = 0, nic = 0;
};

/// Links within a node: those of node n are the n-th so many, alike in all nodes.
topology::LinkId links_per_node(const topology::Cluster& cluster);

class LinkHops {
 public:
  /// Both are borrowed.
  LinkHops(const topology::Cluster& cluster, const topology::Router& router);

  /// Under NVSwitches a hop spreads over all NVLinks of both GPUs.
  void between_gpus(std::int64_t node, std::int64_t from, std::int64_t to, double weight,
                    LinkLoadSum&) const;
  void to_nic(std::int64_t gpu, NodeNic nic, double weight, LinkLoadSum&) const;
  void from_nic(NodeNic nic, std::int64_t gpu, double weight, LinkLoadSum&) const;
  /// `keys` tell the flows apart that the bytes are shared by: one queue pair per kernel channel.
  void between_nics(NodeNic from, NodeNic to, const std::vector<std::uint64_t>& keys, double weight,
                    LinkLoadSum&) const;
  /// The same where nothing is hashed, without the sender's own cable.
  void into_nic(NodeNic from, NodeNic to, double weight, LinkLoadSum&) const;
  /// Between GPUs anywhere, by the router's own choice of NICs.
  void between_any(std::int64_t from_gpu, std::int64_t to_gpu, double weight, LinkLoadSum&) const;
  /// All NVLinks of a GPU to its switches.
  void port(std::int64_t node, std::int64_t gpu, double out, double in, LinkLoadSum&) const;

  topology::LinkId links_per_node() const { return links_per_node_; }

 private:
  void way(topology::DeviceId from, topology::DeviceId to, std::uint64_t key, double weight,
           LinkLoadSum&) const;

  const topology::Cluster& cluster_;
  const topology::Router& router_;
  topology::LinkId links_per_node_ = 0;
  /// NVLinks out of GPU g of node 0 with their share of the port; other nodes are copies of it.
  struct PortLink {
    topology::LinkId link = 0;
    std::int64_t peer = -1;  // GPU in the node that it leads to; -1 for an NVSwitch
    double share = 0.0;
  };
  std::vector<std::vector<PortLink>> ports_;
};

}  // namespace stepcast::sim
