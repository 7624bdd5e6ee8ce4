// Questions to the whole graph, answered by Boost.Graph: slow beside the router's arithmetic, and
// independent of it. For checks, tests and planning.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topology/cluster.hpp"

namespace stepcast::topology {

/// Hops of a shortest path from one device to every other over links of these kinds
/// (breadth-first search); none where there is no way.
std::vector<std::optional<std::int64_t>> hops_from(const Cluster&, DeviceId from,
                                                   const std::vector<LinkKind>& allowed);

/// Whether every device reaches every other.
bool strongly_connected(const Cluster&);

/// One direction of max-flow (push-relabel, whole Mbit/s) between two sets of devices over links of
/// these kinds.
BytesPerSecond max_flow(const Cluster&, const std::vector<DeviceId>& sources,
                        const std::vector<DeviceId>& sinks, const std::vector<LinkKind>& allowed);

}  // namespace stepcast::topology
