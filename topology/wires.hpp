// Devices and links of a cluster one at a time. They follow from ids by arithmetic, so that who
// asks for a few never fills the lists of Cluster::devices() and links(): those of a million GPUs
// take a gigabyte.
#pragma once

#include <cstddef>

#include "topology/cluster.hpp"

namespace stepcast::topology {

std::size_t num_devices(const Cluster&);
std::size_t num_links(const Cluster&);
/// As they stand in devices() and links().
Device device_of(const Cluster&, DeviceId);
Link link_of(const Cluster&, LinkId);

/// Links of one node: those of node n are the n-th so many, alike in all nodes. The NICs' cables
/// follow, then those between switches.
LinkId links_of_a_node(const Cluster&);
LinkId first_link_between_switches(const Cluster&);

/// Whether nodes stand in the fabric in their order, each with all its NICs at one place, and bytes
/// go by destination.
bool in_order(const Cluster&);
/// Which block of that tier of switches (1: leaves) holds a NIC.
std::int64_t block_of(const Cluster&, std::int64_t tier, std::int64_t node, std::int64_t nic);
/// Whether what NICs of one number send to each other shares no link between switches with what
/// others do.
bool rails_apart(const Cluster&);
/// Nodes under a leaf of which each is reached over links between switches of its own: what goes to
/// one shares none with what goes to another. 1 where that is not so.
std::int64_t nodes_reached_apart(const Cluster&);
/// Of the links between switches.
BytesPerSecond narrowest_between_switches(const Cluster&);

}  // namespace stepcast::topology
