#include "sim/network/stepped/layout.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

std::vector<std::int64_t> sorted(std::vector<std::int64_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

SteppedLayout::Loads taken(LinkLoadSum& sum) {
  SteppedLayout::Loads loads;
  for (const LinkLoad& load : sum.take()) loads.push_back({load.link, load.bytes_per_byte});
  return loads;
}

}  // namespace

SteppedLayout::SteppedLayout(const topology::Cluster& cluster, const topology::Router& router,
                             std::vector<std::int64_t> ranks)
    : cluster_(cluster),
      hops_(cluster, router),
      planner_(cluster.node()),
      gpus_per_node_(cluster.node().gpus),
      ranks_(sorted(std::move(ranks))),
      plan_(planner_.plan(ranks_)) {
  expects(ranks_.front() >= 0 && ranks_.back() < cluster_.num_gpus(), "GPUs of this cluster");
}

std::size_t SteppedLayout::num_heads() const {
  std::size_t heads = ranks_.size();
  for (const ChannelPlan::OnNode& on : plan_.nodes())
    heads = std::min(heads, on.group->members.size());
  return heads;
}

std::vector<std::int64_t> SteppedLayout::members(std::size_t node) const {
  std::vector<std::int64_t> out;
  for (const std::int64_t gpu : plan_.nodes()[node].group->members)
    out.push_back(plan_.nodes()[node].node * gpus_per_node_ + gpu);
  return out;
}

std::size_t SteppedLayout::node_of(std::int64_t gpu) const {
  const auto at = std::find_if(plan_.nodes().begin(), plan_.nodes().end(),
                               [&](const auto& on) { return on.node == gpu / gpus_per_node_; });
  return static_cast<std::size_t>(at - plan_.nodes().begin());
}

bool SteppedLayout::same_node(std::int64_t a, std::int64_t b) const {
  return a / gpus_per_node_ == b / gpus_per_node_;
}

/// From the last GPU of the channel on a node to the first one on the next node.
void SteppedLayout::add_ring_exit(std::size_t node, std::size_t channel, LinkLoadSum& sum) const {
  const NodeChannel& ring = plan_.ring_on(node, channel);
  const std::size_t next = (node + 1) % num_nodes();
  const NodeChannel& other = plan_.ring_on(next, channel);
  const NodeNic out{plan_.nodes()[node].node, ring.nic_out};
  const NodeNic in{plan_.nodes()[next].node, other.nic_in};
  if (ring.by_pxn()) hops_.between_gpus(out.node, ring.gpus.back(), ring.out_gpu, 1.0, sum);
  hops_.to_nic(ring.out_gpu, out, 1.0, sum);
  std::vector<std::uint64_t> flows;  // connect.cc doubles every copy of a channel
  const auto copies = static_cast<std::size_t>(plan_.nodes().front().group->channels.copies);
  for (std::size_t k = 0; k < 2 * copies; ++k) flows.push_back(channel + k * num_channels());
  hops_.between_nics(out, in, flows, 1.0, sum);
  hops_.from_nic(in, other.gpus.front(), 1.0, sum);
}

SteppedLayout::Loads SteppedLayout::ring_edge(std::size_t channel, std::size_t place) const {
  const auto order = ring(channel);
  const std::int64_t from = order[place], to = order[(place + 1) % order.size()];
  LinkLoadSum sum(cluster_.links().size());
  if (same_node(from, to))
    hops_.between_gpus(from / gpus_per_node_, in_node(from), in_node(to), 1.0, sum);
  else
    add_ring_exit(node_of(from), channel, sum);
  return taken(sum);
}

std::vector<std::int64_t> SteppedLayout::chain(std::size_t node, std::size_t channel) const {
  std::vector<std::int64_t> out;
  for (const std::int64_t gpu : plan_.chain_on(node, channel).gpus)
    out.push_back(plan_.nodes()[node].node * gpus_per_node_ + gpu);
  return out;
}

SteppedLayout::Loads SteppedLayout::inside(std::int64_t a, std::int64_t b) const {
  expects(same_node(a, b), "two members of a node");
  LinkLoadSum sum(cluster_.links().size());
  hops_.between_gpus(a / gpus_per_node_, in_node(a), in_node(b), 1.0, sum);
  return taken(sum);
}

SteppedLayout::Loads SteppedLayout::between_heads(std::int64_t a, std::int64_t b,
                                                  std::uint64_t key) const {
  LinkLoadSum sum(cluster_.links().size());
  hops_.to_nic(in_node(a), own_nic(a), 1.0, sum);
  hops_.between_nics(own_nic(a), own_nic(b), {key}, 1.0, sum);
  hops_.from_nic(own_nic(b), in_node(b), 1.0, sum);
  return taken(sum);
}

SteppedLayout::Loads SteppedLayout::between_peers(std::int64_t a, std::int64_t b) const {
  if (same_node(a, b)) return inside(a, b);
  std::int64_t out = a;
  if (cluster_.node().kind == topology::NodeKind::nvswitch && nic_of(a) != nic_of(b))
    for (const std::int64_t gpu : members(node_of(a)))
      if (nic_of(gpu) == nic_of(b)) {
        out = gpu;
        break;
      }
  LinkLoadSum sum(cluster_.links().size());
  if (out != a) hops_.between_gpus(a / gpus_per_node_, in_node(a), in_node(out), 1.0, sum);
  hops_.to_nic(in_node(out), own_nic(out), 1.0, sum);
  hops_.between_nics(own_nic(out), own_nic(b), {0, 1}, 1.0, sum);
  hops_.from_nic(own_nic(b), in_node(b), 1.0, sum);
  return taken(sum);
}

SteppedLayout::Loads SteppedLayout::between_pair(std::int64_t a, std::int64_t b) const {
  if (same_node(a, b)) return inside(a, b);
  LinkLoadSum sum(cluster_.links().size());
  hops_.between_any(a, b, 1.0, sum);
  return taken(sum);
}

SteppedLayout::Loads SteppedLayout::into_switch(std::size_t node, std::int64_t head) const {
  LinkLoadSum sum(cluster_.links().size());
  for (const std::int64_t member : members(node))
    hops_.port(plan_.nodes()[node].node, in_node(member), 1.0, member == head ? 1.0 : 0.0, sum);
  return taken(sum);
}

SteppedLayout::Loads SteppedLayout::out_of_switch(std::size_t node, std::int64_t head) const {
  LinkLoadSum sum(cluster_.links().size());
  for (const std::int64_t member : members(node))
    hops_.port(plan_.nodes()[node].node, in_node(member), member == head ? 1.0 : 0.0, 1.0, sum);
  return taken(sum);
}

BytesPerSecond SteppedLayout::port() const {
  BytesPerSecond out{};
  for (const topology::LinkId link : cluster_.nvlink_out(0))
    out += cluster_.links()[link].bandwidth;
  return out;
}

}  // namespace stepcast::sim
