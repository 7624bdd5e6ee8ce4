// From the links of a cluster to the few that can matter to a run. A link that could carry every
// transfer over it at full speed at once never slows one: it is left out. Links that carry the same
// communicators with the same weights differ at most in capacity: the narrowest stands for all.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/system.hpp"
#include "sim/network_model.hpp"
#include "topology/cluster.hpp"

namespace stepcast::sim {

/// What a collective moves through its busiest end per byte: of all NICs, or of all GPUs' ports
/// where no bytes leave the node. 1 without any load.
double busiest_end(const topology::Cluster& cluster, const std::vector<LinkLoad>& loads);

class LinkClasses {
 public:
  explicit LinkClasses(const topology::Cluster& cluster);

  /// The communicator's loads, and the fastest rate (bytes/s of the load's byte) that its transfers
  /// have by their ends alone; uplinks may allow less.
  void add(std::uint32_t communicator, const std::vector<LinkLoad>& loads, double fastest);

  /// Fills in capacities, owners and the communicators' loads.
  void build(engine::System& system) const;

 private:
  struct Use {
    std::uint32_t link = 0;
    std::uint32_t communicator = 0;
    double weight = 0.0;
    double demand = 0.0;
  };
  const topology::Cluster& cluster_;
  std::vector<Use> uses_;
};

}  // namespace stepcast::sim
