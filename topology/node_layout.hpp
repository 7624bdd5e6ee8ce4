// One node as a list of devices and links with numbers local to the node. Every node of a cluster
// is a copy of it, so ids in the cluster are offset + local id. Knows no fabric.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace stepcast::topology {

/// Devices in the order GPUs, NVSwitches, PCIe switches, CPU sockets, NICs. Links 2k and 2k+1 are
/// the two directions of one cable, so the way back of `link` is `link ^ 1`.
struct NodeLayout {
  std::vector<Device> devices;
  std::vector<Link> links;
  DeviceId first_nvswitch = 0, first_pcie_switch = 0, first_cpu = 0, first_nic = 0;

  /// Both directions of a cable or of a bundle of `count`; `bandwidth` and `latency` of one cable.
  void connect(DeviceId a, DeviceId b, Link cable);
};

/// Throws InputError when the numbers of `node` contradict each other.
NodeLayout lay_out_node(const NodeSpec& node, const std::string& origin);

/// How many of `links` NVLinks of a GPU end at each of `nvswitches`: 12 over 6 is 2 each, 18 over 4
/// is 5, 4, 4, 5 (the extra ones go to the ends in turn).
std::vector<std::int64_t> nvlinks_per_switch(std::int64_t links, std::int64_t nvswitches);

/// `index` of `count` things spread evenly over `places`: the place it falls on.
constexpr std::int64_t place_of(std::int64_t index, std::int64_t count, std::int64_t places) {
  return index * places / count;
}

// The parts that the kinds of node are put together from; each file draws what it adds.
void add_devices(NodeLayout&, const NodeSpec&);
void add_pcie_tree(NodeLayout&, const NodeSpec&);         // pcie_tree.cpp
void add_nvswitches(NodeLayout&, const NodeSpec&);        // nvswitch_node.cpp
void add_hybrid_cube_mesh(NodeLayout&, const NodeSpec&);  // hybrid_cube_mesh.cpp

}  // namespace stepcast::topology
