// Puts the switches and cables of a fabric layout into the cluster.
//
// Rail-optimised, two tiers (one scalable unit has one leaf per rail, here 4 rails):
//
//     spine0    spine1     ...                 every leaf reaches every spine
//      | \ \  / | / |
//   leaf0  leaf1  leaf2  leaf3 | leaf0' ...    NIC i of every node of the unit meets its leaf i
//     |      |      |      |
//    nic0   nic1   nic2   nic3   of node 0
//    nic0   nic1   nic2   nic3   of node 1
//
// Plain fat tree, two tiers:
//
//     spine0    spine1     ...
//      |   \  /   |
//    leaf0     leaf1                           all NICs of a node meet one leaf
//    ||||       ||||
//    node 0     node 1
//
// Rail-only: the same without what joins the rails. Each rail has spines of its own, or one leaf
// and none.
//
// Three tiers: leaves and spines form pods (of one rail, when rail-optimised), and core switches
// join the pods: spine s of every pod meets the same cores. A fourth tier repeats this once more.
#include <algorithm>

#include "topology/cluster_parts.hpp"

namespace stepcast::topology {
namespace {

/// Both directions. A switch adds its latency on the links that lead into it.
void add_pair(std::vector<Link>& links, Link up, Duration latency_down) {
  links.push_back(up);
  std::swap(up.from, up.to);
  up.latency = latency_down;
  links.push_back(up);
}

BytesPerSecond cable_of(const ClusterParts& parts) {
  return parts.fabric.link.value > 0 ? parts.fabric.link : parts.node.nic;
}

void add_injection(ClusterParts& parts) {
  const FabricLayout& layout = parts.fabric_layout;
  const Duration nic_and_cable = parts.node.nic_latency + parts.fabric.cable_latency;
  for (std::int64_t n = 0; n < parts.nodes; ++n)
    for (std::int64_t j = 0; j < parts.node.nics; ++j)
      add_pair(parts.links,
               {.from = static_cast<DeviceId>(n) * parts.node_devices() +
                        parts.node_layout.first_nic + static_cast<DeviceId>(j),
                .to = layout.switch_id(1, layout.leaf_of(n, j), 0),
                .kind = LinkKind::injection,
                .bandwidth = std::min(parts.node.nic, cable_of(parts)),
                .latency = nic_and_cable + parts.fabric.switch_latency,
                .count = 1},
               nic_and_cable);
}

/// From every switch of `tier` to its parents in the tier above.
void add_uplinks(ClusterParts& parts, std::int64_t tier) {
  const FabricLayout& layout = parts.fabric_layout;
  const FabricTier& below = layout.tiers[static_cast<std::size_t>(tier - 1)];
  const FabricTier& above = layout.tiers[static_cast<std::size_t>(tier)];
  const Duration into_switch = parts.fabric.cable_latency + parts.fabric.switch_latency;
  const double left = 1.0 - parts.fabric.job.other_jobs;  // of a cable, to this job
  for (std::int64_t b = 0; b < below.blocks; ++b)
    for (std::int64_t i = 0; i < below.top; ++i)
      for (std::int64_t c = 0; c < above.links_up(); ++c)
        add_pair(parts.links,
                 {.from = layout.switch_id(tier, b, i),
                  .to = layout.switch_id(tier + 1, layout.parent_block(tier, b),
                                         layout.parent_index(tier, i, c / above.bundles)),
                  .kind = LinkKind::fabric,
                  .bandwidth =
                      cable_of(parts) * (left * static_cast<double>(above.cables / above.bundles)),
                  .latency = into_switch,
                  .count = above.cables / above.bundles},
                 into_switch);
}

}  // namespace

DeviceKind switch_kind(std::int64_t tier) {
  constexpr std::array kinds{DeviceKind::leaf, DeviceKind::spine, DeviceKind::core,
                             DeviceKind::supercore};
  return kinds.at(static_cast<std::size_t>(tier - 1));
}

void add_fabric(ClusterParts& parts) {
  FabricLayout& layout = parts.fabric_layout;
  for (std::int64_t t = 1; t <= layout.num_tiers(); ++t) {
    FabricTier& tier = layout.tiers[static_cast<std::size_t>(t - 1)];
    tier.first_switch = static_cast<DeviceId>(parts.devices.size());
    for (std::int64_t i = 0; i < tier.blocks * tier.top; ++i)
      parts.devices.push_back({.kind = switch_kind(t), .node = -1, .index = i});
    tier.first_link = static_cast<LinkId>(parts.links.size());
    t == 1 ? add_injection(parts) : add_uplinks(parts, t - 1);
  }
}

}  // namespace stepcast::topology
