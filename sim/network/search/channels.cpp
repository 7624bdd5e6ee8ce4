#include "sim/network/search/channels.hpp"

#include <algorithm>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::sim {

ChannelPlan::ChannelPlan(std::vector<OnNode> nodes, std::int64_t gpus_per_node)
    : nodes_(std::move(nodes)), gpus_per_node_(gpus_per_node) {
  expects(!nodes_.empty(), "a group is on a node");
  num_channels_ = nodes_.front().group->channels.rings.size();
  for (const OnNode& on : nodes_) {
    num_channels_ = std::min(num_channels_, on.group->channels.rings.size());
    num_ranks_ += static_cast<std::int64_t>(on.group->members.size());
  }
}

/// connect.cc swaps the two of a crossing pair on odd nodes, where their number is even.
const NodeChannel& ChannelPlan::ring_on(std::size_t at, std::size_t channel) const {
  const NodeChannels& channels = nodes_.at(at).group->channels;
  const bool swapped = channels.crosses_nics && at % 2 == 1 && num_channels_ % 2 == 0;
  return channels.rings.at(swapped ? channel ^ 1U : channel);
}

const NodeChannel& ChannelPlan::chain_on(std::size_t at, std::size_t channel) const {
  return nodes_.at(at).group->channels.chains.at(channel);
}

std::int64_t ChannelPlan::gpu_index(std::size_t at, std::int64_t local) const {
  return nodes_[at].node * gpus_per_node_ + local;
}

std::vector<std::int64_t> ChannelPlan::ring(std::size_t channel) const {
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(num_ranks_));
  for (std::size_t at = 0; at < nodes_.size(); ++at)
    for (const std::int64_t gpu : ring_on(at, channel).gpus) order.push_back(gpu_index(at, gpu));
  return order;
}

ChannelPlan::RankPlace ChannelPlan::tree_rank(std::size_t channel, int tree,
                                              std::int64_t gpu) const {
  const auto on = std::find_if(nodes_.begin(), nodes_.end(), [&](const OnNode& candidate) {
    return candidate.node == gpu / gpus_per_node_;
  });
  expects(on != nodes_.end(), "a rank of this group");
  const auto at = static_cast<std::size_t>(on - nodes_.begin());
  const std::vector<std::int64_t>& chain = chain_on(at, channel).gpus;
  const auto place = std::find(chain.begin(), chain.end(), gpu % gpus_per_node_);
  expects(place != chain.end(), "a rank of this group");
  const auto head_of = [&](std::int64_t node) {
    const auto other = static_cast<std::size_t>(node);
    return gpu_index(other, chain_on(other, channel).gpus.front());
  };
  RankPlace out;
  if (place == chain.begin()) {
    const TreePlace nodes =
        tree_place(static_cast<std::int64_t>(nodes_.size()), static_cast<std::int64_t>(at), tree);
    if (nodes.parent >= 0) out.parent = head_of(nodes.parent);
    for (const std::int64_t child : nodes.children)
      if (child >= 0) out.children.push_back(head_of(child));
  } else {
    out.parent = gpu_index(at, *(place - 1));
  }
  if (place + 1 != chain.end()) out.children.push_back(gpu_index(at, *(place + 1)));
  return out;
}

ChannelPlanner::ChannelPlanner(topology::NodeSpec node) : node_(std::move(node)) {}

const NodeGroup* ChannelPlanner::group_of(const std::vector<std::int64_t>& members,
                                          bool several_nodes) const {
  const std::lock_guard lock(mutex_);
  auto& entry = groups_[{several_nodes, members}];
  if (!entry)
    entry = std::make_unique<const NodeGroup>(
        NodeGroup{members, search_channels(node_, members, several_nodes)});
  return entry.get();
}

ChannelPlan ChannelPlanner::plan(std::vector<std::int64_t> ranks) const {
  expects(ranks.size() > 1, "channels connect at least two ranks");
  if (!std::is_sorted(ranks.begin(), ranks.end())) std::sort(ranks.begin(), ranks.end());
  const std::int64_t per_node = node_.gpus;
  const bool several_nodes = ranks.front() / per_node != ranks.back() / per_node;
  std::vector<ChannelPlan::OnNode> nodes;
  std::vector<std::int64_t> members;
  for (std::size_t i = 0; i < ranks.size();) {
    const std::int64_t node = ranks[i] / per_node;
    members.clear();
    for (; i < ranks.size() && ranks[i] / per_node == node; ++i)
      members.push_back(ranks[i] % per_node);
    const bool as_before = !nodes.empty() && nodes.back().group->members == members;
    nodes.push_back({node, as_before ? nodes.back().group : group_of(members, several_nodes)});
  }
  return {std::move(nodes), per_node};
}

}  // namespace stepcast::sim
