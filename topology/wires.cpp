#include "topology/wires.hpp"

#include <algorithm>

#include "topology/cluster_parts.hpp"

namespace stepcast::topology {

std::size_t ClusterParts::num_devices() const { return fabric_layout.num_devices; }
std::size_t ClusterParts::num_links() const { return fabric_layout.num_links; }

Device ClusterParts::device(DeviceId id) const {
  if (id >= first_fabric_device()) return fabric_device(*this, id);
  Device device = node_layout.devices[id % node_devices()];
  device.node = id / node_devices();
  return device;
}

Link ClusterParts::link(LinkId id) const {
  if (id >= first_fabric_link()) return fabric_link(*this, id);
  Link link = node_layout.links[id % node_links()];
  const DeviceId offset = id / node_links() * node_devices();
  link.from += offset;
  link.to += offset;
  return link;
}

const std::vector<Device>& ClusterParts::devices() const {
  return devices_.get([this] {
    std::vector<Device> all;
    all.reserve(num_devices());
    for (DeviceId id = 0; id < num_devices(); ++id) all.push_back(device(id));
    return all;
  });
}

const std::vector<Link>& ClusterParts::links() const {
  return links_.get([this] {
    std::vector<Link> all;
    all.reserve(num_links());
    for (LinkId id = 0; id < num_links(); ++id) all.push_back(link(id));
    return all;
  });
}

std::size_t num_devices(const Cluster& cluster) { return cluster.parts().num_devices(); }
std::size_t num_links(const Cluster& cluster) { return cluster.parts().num_links(); }
Device device_of(const Cluster& cluster, DeviceId id) { return cluster.parts().device(id); }
Link link_of(const Cluster& cluster, LinkId id) { return cluster.parts().link(id); }
LinkId links_of_a_node(const Cluster& cluster) { return cluster.parts().node_links(); }

LinkId first_link_between_switches(const Cluster& cluster) {
  const ClusterParts& parts = cluster.parts();
  return parts.first_fabric_link() + static_cast<LinkId>(2 * parts.nodes * parts.node.nics);
}

bool in_order(const Cluster& cluster) {
  const ClusterParts& parts = cluster.parts();
  return parts.fabric_layout.places.empty() && parts.fabric_layout.trays == 1 &&
         parts.slow_cables.empty() && parts.fabric.routing == Routing::destination;
}

std::int64_t block_of(const Cluster& cluster, std::int64_t tier, std::int64_t node,
                      std::int64_t nic) {
  const FabricLayout& layout = cluster.parts().fabric_layout;
  std::int64_t block = layout.leaf_of(node, nic);
  for (std::int64_t t = 1; t < tier; ++t) block = layout.parent_block(t, block);
  return block;
}

bool rails_apart(const Cluster& cluster) {
  const FabricLayout& layout = cluster.parts().fabric_layout;
  // By destination: the first digit of a port is that of its NIC, of whole nodes under a leaf.
  return layout.rails || layout.num_tiers() < 2 || layout.tiers[1].choices % layout.nics == 0;
}

std::int64_t nodes_reached_apart(const Cluster& cluster) {
  const FabricLayout& layout = cluster.parts().fabric_layout;
  // The first digit of a port picks the spine, and with it the core switches; those above them
  // where spines of one pod share none.
  const bool apart = in_order(cluster) && layout.num_tiers() >= 2 &&
                     layout.tiers[1].choices == layout.tiers[0].children &&
                     (layout.num_tiers() < 4 || layout.tiers[2].group == 1);
  return apart ? layout.unit_nodes : 1;
}

BytesPerSecond narrowest_between_switches(const Cluster& cluster) {
  const auto& tiers = cluster.parts().fabric_layout.tiers;
  BytesPerSecond least{};
  for (std::size_t t = 1; t < tiers.size(); ++t) {
    const BytesPerSecond one = cluster.parts().link(tiers[t].first_link).bandwidth;
    least = t == 1 ? one : std::min(least, one);
  }
  return least;
}

}  // namespace stepcast::topology
