// What a collective loads where every node has the same members and nodes follow one another: the
// same on each node, told without going through them. A ring over a hundred thousand nodes is one
// node's loads and the ways from each to the next.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/network/links/hops.hpp"
#include "sim/network/model.hpp"
#include "sim/network/search/channels.hpp"
#include "topology/cluster.hpp"
#include "topology/router.hpp"

namespace stepcast::sim {

/// The same GPUs of `count` nodes from `first` on, at least two.
struct EvenGroup {
  std::int64_t first = 0, count = 2;
  std::vector<std::int64_t> members;  // of each node, ascending
};

/// A ring, in bytes per byte of the collective, not yet rounded.
struct EvenRing {
  std::vector<LinkLoad> on_node;  // of one node, links counted from its first
  std::vector<double> up, down;   // by NIC of a node: its cable
  /// From the NIC of a node to that of the next. By parity of the first node and of the second, as
  /// counted within the group.
  struct Edge {
    std::int64_t out = 0, in = 0;
    double weight = 0.0;
  };
  std::array<std::vector<Edge>, 4> edges;
};

class EvenLoads {
 public:
  /// Both are borrowed.
  EvenLoads(const topology::Cluster& cluster, const topology::Router& router);

  /// busiest_end() of the loads; none of algorithms that are not known here.
  std::optional<double> unit(const Delivery&, const EvenGroup&) const;
  /// No load is a larger part of its link's bandwidth, in bytes per byte and byte/s; of those that
  /// unit() knows.
  double largest_share(const Delivery&, const EvenGroup&) const;
  /// None where its NICs are not joined.
  std::optional<EvenRing> ring(workloads::CollectiveKind, const EvenGroup&) const;

 private:
  /// Edges between nodes of both trees.
  struct TreeEdges {
    std::int64_t most_of_a_node = 0, most_into_a_block = 0;
  };
  TreeEdges tree_edges(const EvenGroup&) const;
  ChannelPlan plan(const EvenGroup&) const;
  /// What an edge of a tree puts on each NIC of its ends, either way; empty where no tree is meant.
  std::vector<double> of_tree_edge(Algorithm, const ChannelPlan&) const;

  const topology::Cluster& cluster_;
  LinkHops hops_;
  ChannelPlanner planner_;
};

}  // namespace stepcast::sim
