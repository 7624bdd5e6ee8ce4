// What the fabric above the NICs does to a single collective: uplinks that are fewer than what
// comes in, or hashed onto each other, carry its bytes more slowly than its NICs send them.
#pragma once

#include <vector>

#include "sim/network/model.hpp"

namespace stepcast::sim {

/// How long the fullest NIC and the fullest link of the fabric are busy with one byte of a
/// collective, in seconds.
struct FabricLoad {
  double nic = 0.0, fabric = 0.0;
};
FabricLoad fabric_load(const std::vector<LinkLoad>& loads, const topology::Cluster& cluster);

/// `time` of `bytes` over so many ranks with its transfer stretched by the fullest link of the
/// fabric over the fullest NIC; as it is where no fabric link is fuller.
CollectiveTime bound_by_fabric(CollectiveTime time, const FabricLoad& load, Bytes bytes,
                               double bus_factor);

}  // namespace stepcast::sim
