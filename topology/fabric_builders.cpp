// The switches and cables of a fabric layout, by id.
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

BytesPerSecond cable_of(const ClusterParts& parts) {
  return parts.fabric.link.value > 0 ? parts.fabric.link : parts.node.nic;
}

/// The way back. A switch adds its latency on the links that lead into it.
Link reversed(Link up, Duration latency_down) {
  std::swap(up.from, up.to);
  up.latency = latency_down;
  return up;
}

Link injection(const ClusterParts& parts, std::int64_t cable, bool down) {
  const FabricLayout& layout = parts.fabric_layout;
  const Duration nic_and_cable = parts.node.nic_latency + parts.fabric.cable_latency;
  const std::int64_t n = cable / parts.node.nics, j = cable % parts.node.nics;
  Link up{.from = static_cast<DeviceId>(n) * parts.node_devices() + parts.node_layout.first_nic +
                  static_cast<DeviceId>(j),
          .to = layout.switch_id(1, layout.leaf_of(n, j), 0),
          .kind = LinkKind::injection,
          .bandwidth = std::min(parts.node.nic, cable_of(parts)),
          .latency = nic_and_cable + parts.fabric.switch_latency,
          .count = 1};
  for (const auto& [node, slowdown] : parts.slow_cables)
    if (node == n) up.bandwidth = up.bandwidth / slowdown;
  return down ? reversed(up, nic_and_cable) : up;
}

/// From a switch of `tier` to one of its parents in the tier above.
Link uplink(const ClusterParts& parts, std::int64_t tier, std::int64_t cable, bool down) {
  const FabricLayout& layout = parts.fabric_layout;
  const FabricTier& below = layout.tiers[static_cast<std::size_t>(tier - 1)];
  const FabricTier& above = layout.tiers[static_cast<std::size_t>(tier)];
  const Duration into_switch = parts.fabric.cable_latency + parts.fabric.switch_latency;
  const double left = 1.0 - parts.fabric.job.other_jobs;  // of a cable, to this job
  const std::int64_t c = cable % above.links_up(), top = cable / above.links_up();
  const std::int64_t b = top / below.top, i = top % below.top;
  const Link up{
      .from = layout.switch_id(tier, b, i),
      .to = layout.switch_id(tier + 1, layout.parent_block(tier, b),
                             layout.parent_index(tier, i, c / above.bundles)),
      .kind = LinkKind::fabric,
      .bandwidth = cable_of(parts) * (left * static_cast<double>(above.cables / above.bundles)),
      .latency = into_switch,
      .count = above.cables / above.bundles};
  return down ? reversed(up, into_switch) : up;
}

/// Cables from the tier below up to this one.
std::int64_t cables_up(const ClusterParts& parts, std::int64_t tier) {
  if (tier == 1) return parts.nodes * parts.node.nics;
  const FabricTier& below = parts.fabric_layout.tiers[static_cast<std::size_t>(tier - 2)];
  const FabricTier& above = parts.fabric_layout.tiers[static_cast<std::size_t>(tier - 1)];
  return below.blocks * below.top * above.links_up();
}

}  // namespace

DeviceKind switch_kind(std::int64_t tier) {
  constexpr std::array kinds{DeviceKind::leaf, DeviceKind::spine, DeviceKind::core,
                             DeviceKind::supercore};
  return kinds.at(static_cast<std::size_t>(tier - 1));
}

void number_fabric(ClusterParts& parts) {
  std::size_t device = parts.first_fabric_device(), link = parts.first_fabric_link();
  FabricLayout& layout = parts.fabric_layout;
  for (std::int64_t t = 1; t <= layout.num_tiers(); ++t) {
    FabricTier& tier = layout.tiers[static_cast<std::size_t>(t - 1)];
    tier.first_switch = static_cast<DeviceId>(device);
    tier.first_link = static_cast<LinkId>(link);
    device += static_cast<std::size_t>(tier.blocks * tier.top);
    link += 2 * static_cast<std::size_t>(cables_up(parts, t));
  }
  layout.num_devices = device;
  layout.num_links = link;
}

Device fabric_device(const ClusterParts& parts, DeviceId id) {
  std::int64_t tier = parts.fabric_layout.num_tiers();
  const auto first = [&] {
    return parts.fabric_layout.tiers[static_cast<std::size_t>(tier - 1)].first_switch;
  };
  while (first() > id) --tier;
  return {.kind = switch_kind(tier), .node = -1, .index = id - first()};
}

Link fabric_link(const ClusterParts& parts, LinkId id) {
  std::int64_t tier = parts.fabric_layout.num_tiers();
  const auto first = [&] {
    return parts.fabric_layout.tiers[static_cast<std::size_t>(tier - 1)].first_link;
  };
  while (first() > id) --tier;
  const std::int64_t cable = (id - first()) / 2;
  const bool down = (id - first()) % 2 == 1;
  return tier == 1 ? injection(parts, cable, down) : uplink(parts, tier - 1, cable, down);
}

}  // namespace stepcast::topology
