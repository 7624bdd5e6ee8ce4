#include "sim/network/links/even_loads.hpp"

#include <algorithm>
#include <limits>

#include "engine/check.hpp"
#include "sim/network/links/load_sum.hpp"
#include "sim/network/search/graph.hpp"
#include "topology/wires.hpp"

namespace stepcast::sim {

using workloads::CollectiveKind;

namespace {

bool is_tree(Algorithm algorithm) {
  return algorithm == Algorithm::tree || algorithm == Algorithm::nvls_tree;
}

}  // namespace

EvenLoads::EvenLoads(const topology::Cluster& cluster, const topology::Router& router)
    : cluster_(cluster), hops_(cluster, router), planner_(cluster.node()) {}

/// Of its first two nodes: the others have the same channels.
ChannelPlan EvenLoads::plan(const EvenGroup& group) const {
  expects(group.count > 1, "a group on several nodes");
  std::vector<std::int64_t> ranks;
  for (const std::int64_t node : {group.first, group.first + 1})
    for (const std::int64_t member : group.members)
      ranks.push_back(node * cluster_.node().gpus + member);
  return planner_.plan(std::move(ranks));
}

/// As LinkLoads::add_ring() has it.
std::optional<EvenRing> EvenLoads::ring(CollectiveKind kind, const EvenGroup& group) const {
  const ChannelPlan channels = plan(group);
  const auto ranks = group.count * static_cast<std::int64_t>(group.members.size());
  const double weight = bus_factor(kind, ranks) / static_cast<double>(channels.num_channels());
  EvenRing out;
  out.up.resize(static_cast<std::size_t>(cluster_.node().nics));
  out.down.resize(out.up.size());
  LinkLoadSum local(topology::num_links(cluster_));
  for (std::size_t c = 0; c < channels.num_channels(); ++c) {
    const NodeChannel& ring = channels.ring_on(0, c);
    for (std::size_t i = 0; i + 1 < ring.gpus.size(); ++i)
      hops_.between_gpus(0, ring.gpus[i], ring.gpus[i + 1], weight, local);
    if (ring.by_pxn()) hops_.between_gpus(0, ring.gpus.back(), ring.out_gpu, weight, local);
    hops_.to_nic(ring.out_gpu, {0, ring.nic_out}, weight, local);
    hops_.from_nic({0, ring.nic_in}, ring.gpus.front(), weight, local);
    out.up[static_cast<std::size_t>(ring.nic_out)] += weight;
    out.down[static_cast<std::size_t>(ring.nic_in)] += weight;
  }
  out.on_node = local.take();
  for (std::size_t from = 0; from < 2; ++from)
    for (std::size_t to = 0; to < 2; ++to)
      for (std::size_t c = 0; c < channels.num_channels(); ++c) {
        const std::int64_t nic_out = channels.ring_on(from, c).nic_out;
        const std::int64_t nic_in = channels.ring_on(to, c).nic_in;
        if (!cluster_.joined(nic_out, nic_in)) return std::nullopt;
        auto& edges = out.edges[2 * from + to];
        const auto same = std::ranges::find_if(edges, [&](const EvenRing::Edge& edge) {
          return edge.out == nic_out && edge.in == nic_in;
        });
        if (same != edges.end())
          same->weight += weight;
        else
          edges.push_back({nic_out, nic_in, weight});
      }
  return out;
}

std::vector<double> EvenLoads::of_tree_edge(Algorithm algorithm, const ChannelPlan& plan) const {
  std::vector<double> by_nic(static_cast<std::size_t>(cluster_.node().nics));
  const auto& members = plan.nodes().front().group->members;
  const bool by_heads = algorithm == Algorithm::nvls_tree;
  const std::size_t count =
      by_heads ? std::min<std::size_t>(members.size(), most_nvls_heads) : plan.num_channels();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t gpu = by_heads ? members[i] : plan.chain_on(0, i).gpus.front();
    by_nic[static_cast<std::size_t>(cluster_.nic_of_gpu(gpu))] += 0.5 / static_cast<double>(count);
  }
  return by_nic;
}

EvenLoads::TreeEdges EvenLoads::tree_edges(const EvenGroup& group) const {
  TreeEdges most;
  std::vector<std::uint8_t> of_node(static_cast<std::size_t>(group.count));
  const std::int64_t tiers = cluster_.num_tiers();
  std::vector<std::vector<std::int64_t>> into(static_cast<std::size_t>(tiers));
  const auto cross = [&](std::int64_t tier, std::int64_t block) {
    auto& blocks = into[static_cast<std::size_t>(tier)];
    const auto at = static_cast<std::size_t>(block);
    if (blocks.size() <= at) blocks.resize(at + 1);
    most.most_into_a_block = std::max(most.most_into_a_block, ++blocks[at]);
  };
  for (int tree = 0; tree < 2; ++tree)
    for (std::int64_t at = 0; at < group.count; ++at) {
      const std::int64_t parent = tree_place(group.count, at, tree).parent;
      if (parent < 0) continue;
      for (const std::int64_t end : {at, parent})
        most.most_of_a_node =
            std::max<std::int64_t>(most.most_of_a_node, ++of_node[static_cast<std::size_t>(end)]);
      for (std::int64_t tier = 1; tier < tiers; ++tier) {
        const std::int64_t a = topology::block_of(cluster_, tier, group.first + at, 0);
        const std::int64_t b = topology::block_of(cluster_, tier, group.first + parent, 0);
        if (a == b) break;
        cross(tier, a);
        cross(tier, b);
      }
    }
  return most;
}

std::optional<double> EvenLoads::unit(const Delivery& delivery, const EvenGroup& group) const {
  const bool sums = delivery.kind == CollectiveKind::all_reduce;
  double busiest = 0.0;
  if (delivery.algorithm == Algorithm::ring &&
      (sums || delivery.kind == CollectiveKind::all_gather ||
       delivery.kind == CollectiveKind::reduce_scatter)) {
    const auto loads = ring(delivery.kind, group);
    if (!loads) return std::nullopt;
    busiest =
        std::max(*std::ranges::max_element(loads->up), *std::ranges::max_element(loads->down));
  } else if (is_tree(delivery.algorithm) && sums) {
    const std::vector<double> edge = of_tree_edge(delivery.algorithm, plan(group));
    busiest =
        static_cast<double>(tree_edges(group).most_of_a_node) * *std::ranges::max_element(edge);
  } else {
    return std::nullopt;
  }
  return rounded_up(busiest, weight_units(cluster_.fabric().routing));
}

double EvenLoads::largest_share(const Delivery& delivery, const EvenGroup& group) const {
  const ChannelPlan channels = plan(group);
  LinkLoadSum local(topology::num_links(cluster_));
  std::vector<double> cables;
  double into_block = 0.0;  // of the busiest NIC, beyond a switch
  if (delivery.algorithm == Algorithm::ring) {
    const auto loads = ring(delivery.kind, group);
    expects(loads.has_value(), "a ring of joined NICs");
    for (const LinkLoad& load : loads->on_node) local.add(load.link, load.bytes_per_byte);
    cables = loads->up;
    cables.insert(cables.end(), loads->down.begin(), loads->down.end());
    into_block = 2 * *std::ranges::max_element(cables);
  } else {
    if (cluster_.node().kind != topology::NodeKind::nvswitch)
      return std::numeric_limits<double>::infinity();
    const TreeEdges edges = tree_edges(group);
    const auto most = static_cast<double>(edges.most_of_a_node);
    const double whole = 2.0;  // NVLinks: into the switches and out, or up and down a chain
    const std::vector<double> by_nic = of_tree_edge(delivery.algorithm, channels);
    for (const std::int64_t gpu : group.members) {
      hops_.port(0, gpu, whole, whole, local);
      const std::int64_t nic = cluster_.nic_of_gpu(gpu);
      const double carried = most * by_nic[static_cast<std::size_t>(nic)];
      hops_.to_nic(gpu, {0, nic}, carried, local);
      hops_.from_nic({0, nic}, gpu, carried, local);
    }
    for (const double edge : by_nic) {
      cables.push_back(edge * most);
      into_block = std::max(into_block, edge * static_cast<double>(edges.most_into_a_block));
    }
  }
  const double rounding = 1.0 / weight_units(cluster_.fabric().routing);
  double share = 0.0;
  for (const LinkLoad& load : local.take())
    share = std::max(share, (load.bytes_per_byte + rounding) /
                                topology::link_of(cluster_, load.link).bandwidth.value);
  const double cable = topology::link_of(cluster_, cluster_.nic_up(0, 0)).bandwidth.value;
  share = std::max(share, (*std::ranges::max_element(cables) + rounding) / cable);
  if (cluster_.num_tiers() < 2) return share;
  if (!topology::rails_apart(cluster_)) into_block *= static_cast<double>(cluster_.node().nics);
  return std::max(share,
                  (into_block + rounding) / topology::narrowest_between_switches(cluster_).value);
}

}  // namespace stepcast::sim
