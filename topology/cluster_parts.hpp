// What a Cluster is made of, for the files of this folder: a node layout that is repeated, a fabric
// layout on top of it, and the devices and links of both in one numbering.
#pragma once

#include <string_view>
#include <vector>

#include "topology/cluster.hpp"
#include "topology/fabric_layout.hpp"
#include "topology/node_layout.hpp"

namespace stepcast::topology {

/// A kind of device in names and in text.
struct KindWords {
  std::string_view name, noun;
};
const KindWords& words_of(DeviceKind);

struct ClusterParts {
  NodeSpec node;
  FabricSpec fabric;
  std::int64_t nodes = 0;
  NodeLayout node_layout;
  FabricLayout fabric_layout;
  std::vector<Device> devices;
  std::vector<Link> links;

  DeviceId node_devices() const { return static_cast<DeviceId>(node_layout.devices.size()); }
  LinkId node_links() const { return static_cast<LinkId>(node_layout.links.size()); }
  DeviceId first_fabric_device() const { return static_cast<DeviceId>(nodes) * node_devices(); }
  LinkId first_fabric_link() const { return static_cast<LinkId>(nodes) * node_links(); }
};

}  // namespace stepcast::topology
