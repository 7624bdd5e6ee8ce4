// The ways through the fabric from NIC to NIC, by its routing. All go up the fewest tiers and come
// down through switches of the same index; what differs is who picks among the equal uplinks.
#pragma once

#include <vector>

#include "topology/cluster_parts.hpp"
#include "topology/router.hpp"

namespace stepcast::topology {

/// What a hash of the headers sees: both ends and which of their queue pairs.
struct FlowId {
  DeviceId from = 0, to = 0;
  std::uint64_t key = 0;
};

/// One way, from the NIC's injection link on to the link into the other NIC. Ends are NICs of two
/// nodes. Under Routing::spray the one that destination-modulo picks.
void append_fabric_path(const ClusterParts&, const Device& from, const Device& to, const FlowId&,
                        Path&);

/// All ways at once, each with the part of the bytes that takes it: Routing::spray.
void append_sprayed_ways(const ClusterParts&, const Device& from, const Device& to,
                         std::vector<LinkShare>&);

/// A choice among `ways` at one tier, by the flow and the seed alone: Routing::ecmp.
std::int64_t hashed_way(std::uint64_t seed, const FlowId&, std::uint64_t stage, std::int64_t ways);

}  // namespace stepcast::topology
