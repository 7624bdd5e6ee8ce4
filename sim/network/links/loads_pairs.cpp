// Loads of what every rank sends to every other: AlltoAll, and exchanges of tokens by kernels that
// know where each goes.
#include <map>
#include <utility>
#include <vector>

#include "sim/network/links/loads.hpp"
#include "topology/wires.hpp"

namespace stepcast::sim {

using topology::LinkId;

/// AlltoAll: every member sends 1/n of its buffer to each other one. Under NVSwitches it hands what
/// goes to another rail to the member of its node on that rail (PXN), so bytes stay on rails.
void LinkLoads::add_all_pairs(const ChannelPlan& plan, LinkLoadSum& sum) const {
  const auto& nodes = plan.nodes();
  const double weight = 1.0 / static_cast<double>(plan.num_ranks());
  const bool pxn = cluster_.node().kind == topology::NodeKind::nvswitch;
  std::map<std::int64_t, double> on_rail;  // members of all nodes by their NIC
  for (const OnNode& on : nodes)
    for (const std::int64_t gpu : on.group->members)
      if (plan.several_nodes()) on_rail[nic_of(gpu)] += 1;
  // The member that speaks for a rail: the first beside its NIC; the sender itself without one.
  const auto speaker = [&](const NodeGroup& group, std::int64_t from, std::int64_t rail) {
    if (pxn && nic_of(from) != rail)
      for (const std::int64_t gpu : group.members)
        if (nic_of(gpu) == rail) return gpu;
    return from;
  };
  on_every_node(plan, sum, [&](std::size_t at, LinkLoadSum& local) {
    const NodeGroup& group = *nodes[at].group;
    const auto here = static_cast<double>(group.members.size());
    for (const std::int64_t from : group.members) {
      if (pxn) hops_.port(nodes[at].node, from, (here - 1) * weight, (here - 1) * weight, local);
      for (const std::int64_t to : group.members)
        if (!pxn && from != to) hops_.between_gpus(nodes[at].node, from, to, weight, local);
      for (const auto& [rail, members] : on_rail) {
        double away = members;
        for (const std::int64_t gpu : group.members) away -= nic_of(gpu) == rail ? 1 : 0;
        const std::int64_t out = speaker(group, from, rail);
        if (out != from) hops_.between_gpus(nodes[at].node, from, out, away * weight, local);
        hops_.to_nic(out, {nodes[at].node, nic_of(out)}, away * weight, local);
      }
      if (plan.several_nodes())
        hops_.from_nic({nodes[at].node, nic_of(from)}, from, 1.0 - here * weight, local);
    }
  });
  add_between_all_nodes(plan, sum, [&](const NodeGroup& source, const NodeGroup& target) {
    NicFlows flows;
    for (const std::int64_t from : source.members)
      for (const std::int64_t to : target.members)
        flows[{nic_of(speaker(source, from, nic_of(to))), nic_of(to)}] += weight;
    return flows;
  });
}

/// Kernels that know where tokens go: a row goes to the equal GPU of each node that has an expert
/// of it, and from there to the ranks that have one. Every rank sends and passes on alike.
void LinkLoads::add_tokens(const TokenCopies& copies, const ChannelPlan& plan,
                           LinkLoadSum& sum) const {
  const auto& nodes = plan.nodes();
  const auto n = static_cast<double>(nodes.size());
  const double away = copies.to_nodes * (n - 1) / n;
  on_every_node(plan, sum, [&](std::size_t at, LinkLoadSum& local) {
    const auto& members = nodes[at].group->members;
    const auto here = static_cast<double>(members.size());
    const double within = copies.to_ranks * (here - 1) / here;
    for (const std::int64_t gpu : members) {
      hops_.port(nodes[at].node, gpu, within, within, local);
      if (!plan.several_nodes()) continue;
      hops_.to_nic(gpu, {nodes[at].node, nic_of(gpu)}, away, local);
      hops_.from_nic({nodes[at].node, nic_of(gpu)}, gpu, away, local);
    }
  });
  if (!plan.several_nodes()) return;
  add_between_all_nodes(plan, sum, [&](const NodeGroup& source, const NodeGroup& target) {
    NicFlows flows;
    for (std::size_t i = 0; i < source.members.size(); ++i)
      flows[{nic_of(source.members[i]), nic_of(target.members[i % target.members.size()])}] +=
          copies.to_nodes / n;
    return flows;
  });
}

/// From every node to every other one, between the NICs that `flows_of` says of their members.
void LinkLoads::add_between_all_nodes(
    const ChannelPlan& plan, LinkLoadSum& sum,
    const std::function<NicFlows(const NodeGroup&, const NodeGroup&)>& flows_of) const {
  // Where no switch hashes, all that a leaf sends to one NIC goes the same ways: `from` stands for
  // the leaf's other NICs.
  struct FromLeaf {
    topology::DeviceId leaf = 0;
    NodeNic from;
    double bytes = 0.0;
  };
  const bool hashed = cluster_.fabric().routing == topology::Routing::ecmp;
  std::map<std::pair<const NodeGroup*, const NodeGroup*>, NicFlows> known;
  std::map<std::int64_t, std::vector<FromLeaf>> into;  // by NIC of the target
  for (const OnNode& target : plan.nodes()) {
    for (const OnNode& source : plan.nodes()) {
      if (source.node == target.node) continue;
      const auto [flows, first] = known.try_emplace({source.group, target.group});
      if (first) flows->second = flows_of(*source.group, *target.group);
      for (const auto& [nics, bytes] : flows->second) {
        const NodeNic from{source.node, nics.first}, to{target.node, nics.second};
        if (hashed || !cluster_.joined(from.nic, to.nic)) {
          hops_.between_nics(from, to, {0, 1}, bytes, sum);
          continue;
        }
        const LinkId up = cluster_.nic_up(from.node, from.nic);
        sum.add(up, bytes);
        const topology::DeviceId leaf = topology::link_of(cluster_, up).to;
        std::vector<FromLeaf>& leaves = into[nics.second];
        if (leaves.empty() || leaves.back().leaf != leaf) leaves.push_back({leaf, from, 0.0});
        leaves.back().bytes += bytes;
      }
    }
    for (auto& [nic, leaves] : into) {
      for (const FromLeaf& one : leaves)
        hops_.into_nic(one.from, {target.node, nic}, one.bytes, sum);
      leaves.clear();
    }
  }
}

}  // namespace stepcast::sim
