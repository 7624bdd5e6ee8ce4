#include "sim/network/links/loads.hpp"

#include <algorithm>
#include <map>

#include "engine/check.hpp"
#include "sim/network/search/graph.hpp"
#include "topology/wires.hpp"

namespace stepcast::sim {

using topology::LinkId;
using topology::NodeKind;
using workloads::CollectiveKind;

namespace {

/// Kernel channels of a searched channel: its copies, each doubled by connect.cc.
std::vector<std::uint64_t> flows_of(const ChannelPlan& plan, std::size_t channel) {
  std::vector<std::uint64_t> keys;
  const auto copies = static_cast<std::uint64_t>(plan.nodes().front().group->channels.copies);
  for (std::uint64_t k = 0; k < 2 * copies; ++k)
    keys.push_back(channel + k * static_cast<std::uint64_t>(plan.num_channels()));
  return keys;
}

bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

}  // namespace

LinkLoads::LinkLoads(const topology::Cluster& cluster, const topology::Router& router)
    : cluster_(cluster),
      router_(router),
      hops_(cluster, router),
      planner_(cluster.node()),
      gpus_per_node_(cluster.node().gpus) {}

void LinkLoads::on_every_node(const ChannelPlan& plan, LinkLoadSum& sum,
                              const std::function<void(std::size_t at, LinkLoadSum&)>& fill) const {
  std::map<const NodeGroup*, std::vector<LinkLoad>> known;
  for (std::size_t at = 0; at < plan.nodes().size(); ++at) {
    const OnNode& on = plan.nodes()[at];
    const auto offset = static_cast<LinkId>(on.node) * hops_.links_per_node();
    const auto [entry, first] = known.try_emplace(on.group);
    if (first) {
      LinkLoadSum local(sum.num_links());
      fill(at, local);
      entry->second = local.take();
      for (LinkLoad& load : entry->second) load.link -= offset;
    }
    for (const LinkLoad& load : entry->second) sum.add(offset + load.link, load.bytes_per_byte);
  }
}

/// The edge that leaves the GPU at `place` of the channel on node `at`.
void LinkLoads::add_ring_edge(const ChannelPlan& plan, std::size_t channel, std::size_t at,
                              std::size_t place, double weight, LinkLoadSum& sum) const {
  const NodeChannel& ring = plan.ring_on(at, channel);
  const std::int64_t node = plan.nodes()[at].node, gpu = ring.gpus[place];
  if (place + 1 < ring.gpus.size())
    return hops_.between_gpus(node, gpu, ring.gpus[place + 1], weight, sum);
  if (!plan.several_nodes()) return hops_.between_gpus(node, gpu, ring.gpus[0], weight, sum);
  if (ring.by_pxn()) hops_.between_gpus(node, gpu, ring.out_gpu, weight, sum);
  const std::size_t next = (at + 1) % plan.nodes().size();
  const NodeChannel& other = plan.ring_on(next, channel);
  const NodeNic out{node, ring.nic_out}, in{plan.nodes()[next].node, other.nic_in};
  hops_.to_nic(ring.out_gpu, out, weight, sum);
  hops_.between_nics(out, in, flows_of(plan, channel), weight, sum);
  hops_.from_nic(in, other.gpus.front(), weight, sum);
}

void LinkLoads::add_ring(CollectiveKind kind, const ChannelPlan& plan, std::int64_t root,
                         LinkLoadSum& sum) const {
  const std::size_t channels = plan.num_channels();
  // What passes each edge of the ring: (n-1)/n of the buffer, twice that for AllReduce; Broadcast
  // and Reduce send all of it over all edges but one.
  const double weight = bus_factor(kind, plan.num_ranks()) / static_cast<double>(channels);
  on_every_node(plan, sum, [&](std::size_t at, LinkLoadSum& local) {
    const std::int64_t node = plan.nodes()[at].node;
    for (std::size_t c = 0; c < channels; ++c) {
      const NodeChannel& ring = plan.ring_on(at, c);
      for (std::size_t i = 0; i + 1 < ring.gpus.size(); ++i)
        hops_.between_gpus(node, ring.gpus[i], ring.gpus[i + 1], weight, local);
      if (!plan.several_nodes()) {
        hops_.between_gpus(node, ring.gpus.back(), ring.gpus.front(), weight, local);
        continue;
      }
      if (ring.by_pxn()) hops_.between_gpus(node, ring.gpus.back(), ring.out_gpu, weight, local);
      hops_.to_nic(ring.out_gpu, {node, ring.nic_out}, weight, local);
      hops_.from_nic({node, ring.nic_in}, ring.gpus.front(), weight, local);
    }
  });
  for (std::size_t c = 0; plan.several_nodes() && c < channels; ++c) {
    const std::vector<std::uint64_t> flows = flows_of(plan, c);
    for (std::size_t at = 0; at < plan.nodes().size(); ++at) {
      const std::size_t next = (at + 1) % plan.nodes().size();
      hops_.between_nics({plan.nodes()[at].node, plan.ring_on(at, c).nic_out},
                         {plan.nodes()[next].node, plan.ring_on(next, c).nic_in}, flows, weight,
                         sum);
    }
  }
  if (has_root(kind)) leave_out(kind, plan, root, weight, sum);
}

/// Nothing enters the root of a Broadcast or leaves that of a Reduce.
void LinkLoads::leave_out(CollectiveKind kind, const ChannelPlan& plan, std::int64_t root,
                          double weight, LinkLoadSum& sum) const {
  const auto& nodes = plan.nodes();
  std::size_t at = 0;
  while (nodes[at].node != root / gpus_per_node_) ++at;
  for (std::size_t c = 0; c < plan.num_channels(); ++c) {
    const auto& gpus = plan.ring_on(at, c).gpus;
    auto place = static_cast<std::size_t>(
        std::find(gpus.begin(), gpus.end(), root % gpus_per_node_) - gpus.begin());
    std::size_t from = at;
    if (kind == CollectiveKind::broadcast) {
      if (place == 0) from = (at + nodes.size() - 1) % nodes.size();
      place = (place == 0 ? plan.ring_on(from, c).gpus.size() : place) - 1;
    }
    add_ring_edge(plan, c, from, place, -weight, sum);
  }
}

/// Up and down the chain of every channel.
void LinkLoads::add_chains(const ChannelPlan& plan, LinkLoadSum& sum) const {
  const double weight = 1.0 / static_cast<double>(plan.num_channels());
  on_every_node(plan, sum, [&](std::size_t at, LinkLoadSum& local) {
    for (std::size_t c = 0; c < plan.num_channels(); ++c) {
      const std::vector<std::int64_t>& chain = plan.chain_on(at, c).gpus;
      for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
        hops_.between_gpus(plan.nodes()[at].node, chain[i], chain[i + 1], weight, local);
        hops_.between_gpus(plan.nodes()[at].node, chain[i + 1], chain[i], weight, local);
      }
    }
  });
}

/// Both ways between the GPUs that a channel has beside its NICs on two nodes.
void LinkLoads::add_between_heads(const ChannelPlan& plan, std::size_t from, std::size_t to,
                                  std::size_t channel, std::int64_t from_gpu, std::int64_t to_gpu,
                                  double weight, LinkLoadSum& sum) const {
  const NodeNic a{plan.nodes()[from].node, nic_of(from_gpu)};
  const NodeNic b{plan.nodes()[to].node, nic_of(to_gpu)};
  hops_.to_nic(from_gpu, a, weight, sum);
  hops_.between_nics(a, b, {channel}, weight, sum);
  hops_.from_nic(b, to_gpu, weight, sum);
  hops_.to_nic(to_gpu, b, weight, sum);
  hops_.between_nics(b, a, {channel}, weight, sum);
  hops_.from_nic(a, from_gpu, weight, sum);
}

/// Every node but the root sends the sum of what is below it to its parent and gets the whole sum
/// back, half of the bytes in each of the two trees.
void LinkLoads::add_tree(const ChannelPlan& plan, LinkLoadSum& sum) const {
  add_chains(plan, sum);
  const std::size_t nodes = plan.nodes().size(), channels = plan.num_channels();
  const double weight = 0.5 / static_cast<double>(channels);
  for (int tree = 0; tree < 2 && nodes > 1; ++tree)
    for (std::size_t at = 0; at < nodes; ++at) {
      const std::int64_t parent =
          tree_place(static_cast<std::int64_t>(nodes), static_cast<std::int64_t>(at), tree).parent;
      if (parent < 0) continue;
      const auto to = static_cast<std::size_t>(parent);
      for (std::size_t c = 0; c < channels; ++c)
        add_between_heads(plan, at, to, c + static_cast<std::size_t>(tree) * channels,
                          plan.chain_on(at, c).gpus.front(), plan.chain_on(to, c).gpus.front(),
                          weight, sum);
    }
}

/// NVLink SHARP. AllReduce: every member's buffer goes into the switch once, and out of it comes
/// one p-th of the sum, which that head then multicasts to all. AllGather and ReduceScatter are
/// halves.
void LinkLoads::add_in_switches(CollectiveKind kind, const ChannelPlan& plan,
                                LinkLoadSum& sum) const {
  on_every_node(plan, sum, [&](std::size_t at, LinkLoadSum& local) {
    const auto& members = plan.nodes()[at].group->members;
    const double share = 1.0 / static_cast<double>(members.size());
    const bool reduces = kind != CollectiveKind::all_gather;
    const bool spreads = kind != CollectiveKind::reduce_scatter;
    if (members.size() < 2) return;
    for (const std::int64_t gpu : members)
      hops_.port(plan.nodes()[at].node, gpu, (reduces ? 1.0 : 0.0) + (spreads ? share : 0.0),
                 (reduces ? share : 0.0) + (spreads ? 1.0 : 0.0), local);
  });
}

/// NVLSTree: one double tree over the nodes for every head, which has one p-th of the bytes.
void LinkLoads::add_head_trees(const ChannelPlan& plan, LinkLoadSum& sum) const {
  std::size_t heads = plan.nodes().front().group->members.size();
  for (const OnNode& on : plan.nodes()) heads = std::min(heads, on.group->members.size());
  heads = std::min<std::size_t>(heads, most_nvls_heads);
  const std::size_t nodes = plan.nodes().size();
  const double weight = 0.5 / static_cast<double>(heads);
  for (int tree = 0; tree < 2; ++tree)
    for (std::size_t at = 0; at < nodes; ++at) {
      const std::int64_t parent =
          tree_place(static_cast<std::int64_t>(nodes), static_cast<std::int64_t>(at), tree).parent;
      if (parent < 0) continue;
      const auto to = static_cast<std::size_t>(parent);
      for (std::size_t h = 0; h < heads; ++h)
        add_between_heads(plan, at, to, h + static_cast<std::size_t>(tree) * heads,
                          plan.nodes()[at].group->members[h], plan.nodes()[to].group->members[h],
                          weight, sum);
    }
}

/// PAT: rounds of distance 1, 2, 4, ..., in which every rank passes on all it has (AllGather); the
/// last round only what is missing. ReduceScatter runs backwards.
void LinkLoads::add_pat(CollectiveKind kind, const ChannelPlan& plan, LinkLoadSum& sum) const {
  const std::size_t n = plan.nodes().size();
  expects(static_cast<std::int64_t>(n) == plan.num_ranks(), "PAT has one rank on every node");
  for (std::size_t distance = 1; distance < n; distance *= 2) {
    const double weight =
        static_cast<double>(std::min(distance, n - distance)) / static_cast<double>(n);
    for (std::size_t r = 0; r < n; ++r) {
      std::size_t from = r, to = (r + distance) % n;
      if (kind == CollectiveKind::reduce_scatter) std::swap(from, to);
      const auto gpu = [&](std::size_t at) {
        return plan.nodes()[at].node * gpus_per_node_ + plan.nodes()[at].group->members.front();
      };
      hops_.between_any(gpu(from), gpu(to), weight, sum);
    }
  }
}

/// Copy engines write every shard to every other member of an NVLink domain.
void LinkLoads::add_copies(const ChannelPlan& plan, LinkLoadSum& sum) const {
  expects(!plan.several_nodes(), "copy engines reach one node's GPUs");
  const auto& members = plan.nodes().front().group->members;
  const double weight = 1.0 / static_cast<double>(members.size());
  for (const std::int64_t from : members)
    for (const std::int64_t to : members)
      if (from != to) hops_.between_gpus(plan.nodes().front().node, from, to, weight, sum);
}

/// Under one NVSwitch NCCL spreads a message over all NVLinks of both ends.
void LinkLoads::add_pair(const std::vector<std::int64_t>& ranks, LinkLoadSum& sum) const {
  expects(ranks.size() == 2 && ranks[0] != ranks[1] && std::min(ranks[0], ranks[1]) >= 0 &&
              std::max(ranks[0], ranks[1]) < cluster_.num_gpus(),
          "a sender and a receiver, GPUs of this cluster");
  const std::int64_t node = ranks[0] / gpus_per_node_;
  if (node == ranks[1] / gpus_per_node_)
    return hops_.between_gpus(node, ranks[0] % gpus_per_node_, ranks[1] % gpus_per_node_, 1.0, sum);
  hops_.between_any(ranks[0], ranks[1], 1.0, sum);
}

std::vector<LinkLoad> LinkLoads::of(const Delivery& delivery,
                                    const std::vector<std::int64_t>& ranks) const {
  if (ranks.size() < 2) return {};
  const CollectiveKind kind = delivery.kind;
  LinkLoadSum sum(topology::num_links(cluster_));
  sum.reserve(32 * ranks.size());
  if (kind == CollectiveKind::send_receive) {
    add_pair(ranks, sum);
    return sum.take_rounded(weight_units(cluster_.fabric().routing));
  }
  for (const std::int64_t rank : ranks)
    expects(rank >= 0 && rank < cluster_.num_gpus(), "GPUs of this cluster");
  const ChannelPlan plan = planner_.plan(ranks);
  switch (delivery.algorithm) {
    case Algorithm::ring:
      add_ring(kind, plan, ranks.front(), sum);
      break;
    case Algorithm::tree:
      add_tree(plan, sum);
      break;
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      add_in_switches(kind, plan, sum);
      if (delivery.algorithm == Algorithm::nvls_tree && plan.several_nodes())
        add_head_trees(plan, sum);
      if (delivery.algorithm == Algorithm::nvls && plan.several_nodes())
        add_network_sum(kind, plan, heads_by_member(plan), sum);
      break;
    case Algorithm::collnet_direct:
      add_collnet_direct(kind, plan, sum);
      break;
    case Algorithm::collnet_chain:
      add_chains(plan, sum);
      add_network_sum(kind, plan, heads_by_channel(plan), sum);
      break;
    case Algorithm::pat:
      add_pat(kind, plan, sum);
      break;
    case Algorithm::p2p:
      add_all_pairs(plan, sum);
      break;
    case Algorithm::copy_engine:
      add_copies(plan, sum);
      break;
    case Algorithm::node_aware:
      add_tokens(delivery.copies, plan, sum);
      break;
  }
  return sum.take_rounded(weight_units(cluster_.fabric().routing));
}

GroupShape shape_of(const topology::Cluster& cluster, const std::vector<std::int64_t>& ranks) {
  expects(!ranks.empty(), "a group has a member");
  const std::int64_t per_node = cluster.node().gpus;
  std::vector<std::int64_t> nodes;
  nodes.reserve(ranks.size());
  for (const std::int64_t rank : ranks) nodes.push_back(rank / per_node);
  std::sort(nodes.begin(), nodes.end());
  GroupShape shape{.ranks = static_cast<std::int64_t>(ranks.size()),
                   .nodes = 0,
                   .ranks_per_node = 1,
                   .node_stride = 1};
  for (auto at = nodes.begin(); at != nodes.end();) {
    const auto next = std::upper_bound(at, nodes.end(), *at);
    if (shape.nodes == 0 && next != nodes.end()) shape.node_stride = *next - *at;
    ++shape.nodes;
    shape.ranks_per_node = std::max<std::int64_t>(shape.ranks_per_node, next - at);
    at = next;
  }
  return shape;
}

}  // namespace stepcast::sim
