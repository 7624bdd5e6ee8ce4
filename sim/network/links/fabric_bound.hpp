// What the fabric above the NICs does to a single collective: uplinks that are fewer than what
// comes in, or hashed onto each other, carry its bytes more slowly than its NICs send them.
#pragma once

#include <vector>

#include "sim/network/model.hpp"

namespace stepcast::sim {

/// `time` with its transfer stretched by the fullest link of the fabric over the fullest NIC; as it
/// is where no fabric link is fuller. Loads are those of the collective.
CollectiveTime bound_by_fabric(CollectiveTime time, workloads::CollectiveKind kind, Bytes bytes,
                               std::int64_t ranks, const std::vector<LinkLoad>& loads,
                               const topology::Cluster& cluster);

}  // namespace stepcast::sim
