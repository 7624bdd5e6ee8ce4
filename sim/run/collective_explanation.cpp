#include "sim/run/collective_explanation.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

bool runs_on_chains(Algorithm algorithm) {
  return algorithm == Algorithm::tree || algorithm == Algorithm::collnet_chain;
}

bool runs_on_rings(Algorithm algorithm) { return algorithm == Algorithm::ring; }

bool runs_on_trees(Algorithm algorithm) {
  return algorithm == Algorithm::tree || algorithm == Algorithm::nvls_tree;
}

void add_channels(CollectiveExplanation& out, const ChannelPlan& plan, Algorithm algorithm) {
  const NodeChannels& found = plan.nodes().front().group->channels;
  out.searched = static_cast<std::int64_t>(plan.num_channels()) * found.copies;
  out.hierarchical = runs_on_chains(algorithm);
  out.channel_speed = out.hierarchical ? found.chain_speed : found.ring_speed;
  out.crosses_nics = runs_on_rings(algorithm) && found.crosses_nics;
  for (std::size_t c = 0; c < plan.num_channels(); ++c) {
    auto& channel = out.channels.emplace_back();
    for (std::size_t at = 0; at < plan.nodes().size(); ++at)
      channel.push_back(
          {plan.nodes()[at].node, out.hierarchical ? plan.chain_on(at, c) : plan.ring_on(at, c)});
  }
}

void add_trees(CollectiveExplanation& out, const ChannelPlan& plan) {
  const auto nodes = static_cast<std::int64_t>(plan.nodes().size());
  for (const int tree : {0, 1})
    for (std::int64_t at = 0; at < nodes; ++at)
      out.parents[static_cast<std::size_t>(tree)].push_back(tree_place(nodes, at, tree).parent);
}

/// The link that its load keeps busy for longest.
void add_bottleneck(CollectiveExplanation& out, const topology::Cluster& cluster,
                    const std::vector<LinkLoad>& loads, Bytes bytes) {
  const auto seconds_of = [&](const LinkLoad& load) {
    return load.bytes_per_byte / cluster.links()[load.link].bandwidth.value;
  };
  const auto busiest = std::max_element(
      loads.begin(), loads.end(),
      [&](const LinkLoad& a, const LinkLoad& b) { return seconds_of(a) < seconds_of(b); });
  if (busiest == loads.end()) return;
  const topology::Link& link = cluster.links()[busiest->link];
  const auto alike = std::count_if(loads.begin(), loads.end(), [&](const LinkLoad& load) {
    return seconds_of(load) >= seconds_of(*busiest) * 0.999;
  });
  const double moved = static_cast<double>(bytes.value) * busiest->bytes_per_byte;
  out.bottleneck.push_back({.from = cluster.name_of(link.from),
                            .to = cluster.name_of(link.to),
                            .load = Bytes(std::llround(moved)),
                            .capacity = link.bandwidth,
                            .alike = alike - 1});
}

/// By which NCCL of the scenario's version chooses.
void add_options(CollectiveExplanation& out, const Scenario& scenario, const NcclTuning& tuning,
                 const GroupShape& shape) {
  const auto& [kind, bytes, dtype] = *scenario.collective;
  NcclOverrides overrides = scenario.nccl_overrides;
  overrides.fabric_has_sharp = scenario.fabric.sharp;
  out.options = nccl_options(tuning, planned_machine(scenario.node, shape, overrides),
                             {.kind = kind, .bytes = bytes, .dtype = dtype}, overrides);
}

}  // namespace

std::vector<CollectiveExplanation::Term> terms_of(const CollectiveTime& time) {
  std::vector<CollectiveExplanation::Term> terms;
  const std::int64_t in_node = time.hops - time.network_hops;
  const Duration hops = in_node * time.hop_in_node + time.network_hops * time.hop_between_nodes;
  terms.push_back({"start", 1, time.start});
  if (in_node > 0) terms.push_back({"hops in nodes", in_node, time.hop_in_node});
  if (time.network_hops > 0)
    terms.push_back({"hops between nodes", time.network_hops, time.hop_between_nodes});
  if (time.path_in_node != Duration(0))
    terms.push_back({"wires in nodes", time.path_hops_in_node, time.path_in_node});
  if (time.path_between_nodes != Duration(0))
    terms.push_back({"wires between nodes", time.network_hops, time.path_between_nodes});
  if (time.fill > Duration(0)) terms.push_back({"pipeline filling", 1, time.fill});
  terms.push_back({"transfer", 1, time.transfer - time.messages});
  if (time.messages > Duration(0)) terms.push_back({"messages of a NIC", 1, time.messages});
  // The transfer is already scaled to the measurement; the rest of the difference stands alone.
  const Duration wires =
      time.path_hops_in_node * time.path_in_node + time.network_hops * time.path_between_nodes;
  const Duration rest = time.latency - time.start - hops - wires - time.fill;
  if (rest != Duration(0)) terms.push_back({"beyond the model", 1, rest});
  return terms;
}

CollectiveExplanation explain_collective(const Scenario& scenario, const Network& network,
                                         const CollectiveTime& time,
                                         std::vector<std::int64_t> ranks) {
  const topology::Cluster& cluster = network.cluster();
  const auto& [kind, bytes, dtype] = *scenario.collective;
  CollectiveExplanation out;
  out.terms = terms_of(time);
  if (ranks.size() < 2) return out;
  const GroupShape shape = shape_of(cluster, ranks);
  const LinkLoads loads(cluster, network.router());
  const bool pair = kind == CollectiveKind::send_receive;
  if (pair) {  // the time is that of one message: from the first rank to the last
    ranks = {ranks.front(), ranks.back()};
  } else {
    const ChannelPlan plan = loads.plan(ranks);
    if (runs_on_rings(time.algorithm) || runs_on_chains(time.algorithm))
      add_channels(out, plan, time.algorithm);
    if (runs_on_trees(time.algorithm) && plan.several_nodes()) add_trees(out, plan);
    if (time.algorithm == Algorithm::nvls || time.algorithm == Algorithm::nvls_tree)
      out.heads = std::min(most_nvls_heads,
                           static_cast<std::int64_t>(plan.nodes().front().group->members.size()));
  }
  add_bottleneck(out, cluster, loads.of({kind, time.algorithm}, ranks), bytes);
  if (!pair && kind != CollectiveKind::all_to_all && network.nccl)
    add_options(out, scenario, network.nccl->tuning, shape);
  return out;
}

}  // namespace stepcast::sim
