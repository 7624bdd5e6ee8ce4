// The channels of a communicator, laid over the nodes that its members are on: rings through all of
// them, chains and heads for the trees. Every node has the channels that the search finds for its
// own members (ring_search.hpp); the nodes follow in ascending order.
//
//   ring of channel 0, crossing NICs:   node 0: nic0 > g0 ... g1 > nic1   node 1: nic1 > g1 ... g0
//   > nic0: odd nodes run the pair's other half, so that no bytes change rails
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/network/search/ring_search.hpp"
#include "sim/network/search/trees.hpp"
#include "topology/cluster.hpp"

namespace stepcast::sim {

/// A set of members that one or more nodes have, with its channels.
struct NodeGroup {
  std::vector<std::int64_t> members;  // GPUs of a node, ascending
  NodeChannels channels;
};

class ChannelPlan {
 public:
  struct OnNode {
    std::int64_t node = 0;
    const NodeGroup* group = nullptr;
  };
  ChannelPlan(std::vector<OnNode> nodes, std::int64_t gpus_per_node);

  const std::vector<OnNode>& nodes() const { return nodes_; }
  bool several_nodes() const { return nodes_.size() > 1; }
  std::int64_t num_ranks() const { return num_ranks_; }
  /// Searched channels that all nodes have; NCCL runs each several times over.
  std::size_t num_channels() const { return num_channels_; }

  /// `at` counts the nodes of the group.
  const NodeChannel& ring_on(std::size_t at, std::size_t channel) const;
  const NodeChannel& chain_on(std::size_t at, std::size_t channel) const;

  /// GPU indexes of the cluster in the order of the ring.
  std::vector<std::int64_t> ring(std::size_t channel) const;

  /// A rank's place in a tree of ranks: node to node by the double tree, down a chain in each.
  struct RankPlace {
    std::int64_t parent = -1;
    std::vector<std::int64_t> children;
  };
  RankPlace tree_rank(std::size_t channel, int tree, std::int64_t gpu) const;

 private:
  std::int64_t gpu_index(std::size_t at, std::int64_t local) const;

  std::vector<OnNode> nodes_;
  std::int64_t gpus_per_node_ = 1;
  std::int64_t num_ranks_ = 0;
  std::size_t num_channels_ = 0;
};

/// Plans for one kind of node; searches each set of members once. May be shared by threads.
class ChannelPlanner {
 public:
  explicit ChannelPlanner(topology::NodeSpec node);

  /// GPU indexes in any order, at least two.
  ChannelPlan plan(std::vector<std::int64_t> ranks) const;

 private:
  const NodeGroup* group_of(const std::vector<std::int64_t>& members, bool several_nodes) const;

  topology::NodeSpec node_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<bool, std::vector<std::int64_t>>, std::unique_ptr<const NodeGroup>>
      groups_;
};

}  // namespace stepcast::sim
