// Catalogue machines with NCCL's network model, for the tests of the stepped mode.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "sim/files/toml_table.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/network/stepped/collective.hpp"
#include "sim/network/stepped/expansion.hpp"
#include "sim/scenario/catalogue.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {

struct SteppedMachine {
  topology::Cluster cluster;
  topology::StaticRouter router{cluster};
  NcclNetwork network;
  std::vector<std::int64_t> ranks;

  /// Every GPU of `nodes` nodes; leaves of two nodes where they are oversubscribed.
  SteppedMachine(const std::string& node, std::int64_t nodes, double oversubscription = 1.0,
                 const NcclOverrides& overrides = {})
      : cluster(built(node, nodes, oversubscription)),
        network(cluster, router, catalogue().nccl("2.20"), {}, overrides),
        ranks(static_cast<std::size_t>(cluster.num_gpus())) {
    std::iota(ranks.begin(), ranks.end(), 0);
  }

  static topology::Cluster built(const std::string& name, std::int64_t nodes, double narrow) {
    const Catalogue& catalogue = stepcast::catalogue();
    const topology::NodeSpec node = catalogue.node(toml_text(name, "test"));
    topology::FabricSpec fabric =
        catalogue.fabric(toml_text(narrow > 1 ? "fat-tree" : "rail-optimized", "test"));
    fabric.oversubscription = narrow;
    if (narrow > 1)
      fabric.ports =
          2 * node.nics + static_cast<std::int64_t>(2 * static_cast<double>(node.nics) / narrow);
    return topology::Cluster::build(node, nodes, fabric);
  }

  SteppedCollective stepped(workloads::CollectiveKind kind, Bytes bytes) const {
    return step_collective(cluster, router, network, kind, bytes, workloads::Dtype::bf16, ranks);
  }
  std::vector<BytesPerSecond> capacities() const {
    std::vector<BytesPerSecond> out;
    for (const topology::Link& link : cluster.links()) out.push_back(link.bandwidth);
    return out;
  }
};

inline NcclOverrides only(Algorithm algorithm) {
  NcclOverrides overrides;
  overrides.algorithm = algorithm;
  return overrides;
}

}  // namespace stepcast::sim
