// Loads of sums in the network's switches (CollNet).
#include <algorithm>
#include <set>

#include "engine/check.hpp"
#include "sim/network/links/loads.hpp"

namespace stepcast::sim {

using topology::LinkId;
using workloads::CollectiveKind;

LinkLoads::Heads LinkLoads::heads_by_member(const ChannelPlan& plan) const {
  std::size_t count = plan.nodes().front().group->members.size();
  for (const OnNode& on : plan.nodes()) count = std::min(count, on.group->members.size());
  Heads heads;
  for (const OnNode& on : plan.nodes())
    heads.emplace_back(on.group->members.begin(),
                       on.group->members.begin() + static_cast<std::ptrdiff_t>(count));
  return heads;
}

LinkLoads::Heads LinkLoads::heads_by_channel(const ChannelPlan& plan) const {
  Heads heads;
  for (std::size_t at = 0; at < plan.nodes().size(); ++at) {
    auto& on = heads.emplace_back();
    for (std::size_t c = 0; c < plan.num_channels(); ++c)
      on.push_back(plan.chain_on(at, c).gpus.front());
  }
  return heads;
}

/// Every member gives each head its part and gets the sum of it back, by NVLink.
void LinkLoads::add_collnet_direct(CollectiveKind kind, const ChannelPlan& plan,
                                   LinkLoadSum& sum) const {
  const Heads heads = heads_by_channel(plan);
  on_every_node(plan, sum, [&](std::size_t at, LinkLoadSum& local) {
    const double weight = 1.0 / static_cast<double>(heads[at].size());
    const std::int64_t node = plan.nodes()[at].node;
    for (const std::int64_t head : heads[at])
      for (const std::int64_t gpu : plan.nodes()[at].group->members) {
        if (gpu == head) continue;
        if (kind != CollectiveKind::all_gather) hops_.between_gpus(node, gpu, head, weight, local);
        if (kind != CollectiveKind::reduce_scatter)
          hops_.between_gpus(node, head, gpu, weight, local);
      }
  });
  add_network_sum(kind, plan, heads, sum);
}

/// Per head one aggregation tree: the links on the routes to the first node. A sum goes up every
/// link of it once, the result comes down once; a gather goes up as it is, a scatter comes down so.
void LinkLoads::add_network_sum(CollectiveKind kind, const ChannelPlan& plan, const Heads& heads,
                                LinkLoadSum& sum) const {
  const auto nodes = static_cast<double>(plan.nodes().size());
  const double part = 1.0 / static_cast<double>(heads.front().size());
  const double up = kind == CollectiveKind::all_gather ? part / nodes : part;
  const double down = kind == CollectiveKind::reduce_scatter ? part / nodes : part;
  std::set<LinkId> crossed;
  for (std::size_t h = 0; h < heads.front().size(); ++h) {
    crossed.clear();
    const NodeNic root{plan.nodes().front().node, nic_of(heads.front()[h])};
    for (std::size_t at = 0; at < plan.nodes().size(); ++at) {
      const NodeNic nic{plan.nodes()[at].node, nic_of(heads[at][h])};
      hops_.to_nic(heads[at][h], nic, up, sum);
      hops_.from_nic(nic, heads[at][h], down, sum);
      sum.add(cluster_.nic_up(nic.node, nic.nic), up);
      sum.add(cluster_.nic_down(nic.node, nic.nic), down);
      if (at == 0) continue;
      const topology::Path path =
          router_.path(cluster_.nic(nic.node, nic.nic), cluster_.nic(root.node, root.nic), h);
      for (std::size_t i = 1; i + 1 < path.size(); ++i) {
        const bool first = crossed.insert(path[i]).second;
        if (first || kind == CollectiveKind::all_gather) sum.add(path[i], up);
        if (first || kind == CollectiveKind::reduce_scatter)
          sum.add(topology::reverse(path[i]), down);
      }
    }
  }
}

}  // namespace stepcast::sim
