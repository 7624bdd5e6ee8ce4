// What the wires of a cluster add to a hop, or take off it, beside the catalogue's entry that its
// node and fabric are referred to (topology::NodeReference). The fitted constants hold that entry's
// own wires, so only a difference counts. Knows no algorithm: a path is from GPU to GPU.
#pragma once

#include "sim/network/model.hpp"
#include "topology/cluster.hpp"
#include "topology/router.hpp"

namespace stepcast::sim {

class PathLatency {
 public:
  /// Both are borrowed.
  PathLatency(const topology::Cluster& cluster, const topology::Router& router);

  /// False for a cluster of catalogue entries as they are.
  bool differs() const { return differs_; }

  /// `time`, whose hops cross the paths between the group's members, with the difference of every
  /// hop added to its latency: nothing overlaps with a wire. A figure that rests on measurements is
  /// derived then. Rings and pairs take the mean over the hops of the ring, trees and switches the
  /// farthest member from the first. A group lies as its shape says, from node 0 on.
  CollectiveTime added_to(CollectiveTime time, workloads::CollectiveKind, Bytes,
                          const GroupShape&) const;

 private:
  Duration of_path(topology::DeviceId from, topology::DeviceId to) const;
  Duration in_node(const GroupShape&) const;
  Duration between_nodes(const GroupShape&, bool around_a_ring) const;

  const topology::Cluster& cluster_;
  const topology::Router& router_;
  // Differences of one pass each.
  Duration nvlink_{}, nic_{}, pcie_{}, socket_{}, switch_{}, cable_{};
  bool differs_ = false;
};

}  // namespace stepcast::sim
