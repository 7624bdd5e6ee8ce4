// How the groups of a plan meet on the machine: as one collective each, but for the ring of a
// context group, which is a message of every member to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/model.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::sim {

/// What the time of a group's collectives depends on. A ring of messages takes as long as its
/// slowest pair: one on two nodes, if there is one.
GroupShape shape_of(const topology::Cluster&, workloads::GroupKind,
                    const std::vector<std::int64_t>& ranks);

/// Bytes over each link per byte of the collective, or of one message of the ring.
std::vector<LinkLoad> loads_of(const NetworkModel&, workloads::GroupKind, const Delivery&,
                               const std::vector<std::int64_t>& ranks);

}  // namespace stepcast::sim
