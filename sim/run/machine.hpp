// What a scenario runs on, as values that many scenarios share: the cluster and its routes, the
// tables' rows, the models of collectives and kernels made of them. Reads no file and knows no
// plan; session.hpp makes and keeps them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/kernels/kernel_model.hpp"
#include "sim/network/links/fabric_bound.hpp"
#include "sim/network/model.hpp"
#include "sim/network/nccl/time.hpp"
#include "sim/program/cache.hpp"
#include "sim/run/layout.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/tables/calibration_table.hpp"
#include "topology/cluster.hpp"
#include "topology/router.hpp"

namespace stepcast::sim {

/// A cluster with the ways through it.
struct Wiring {
  topology::Cluster cluster;
  topology::StaticRouter router;

  /// Throws InputError at `origin` when the fabric cannot hold the nodes.
  Wiring(const topology::NodeSpec& node, std::int64_t nodes, const topology::FabricSpec& fabric,
         const std::string& origin);
  explicit Wiring(topology::Cluster of);
};

/// What a collective over the first GPUs of a cluster puts on its links.
struct LoadKey {
  workloads::CollectiveKind kind{};
  Algorithm algorithm{};
  std::int64_t gpus = 0;

  friend bool operator==(const LoadKey&, const LoadKey&) = default;
};

/// The times of collectives on one cluster. Threads may share one.
struct Network {
  std::shared_ptr<const Wiring> wiring;  // what `model` speaks of
  std::optional<NcclFacts> nccl;         // none on a host
  std::unique_ptr<const NetworkModel> model;
  std::vector<std::string>
      warnings;  // of the machine, and what the user's NCCL variables do not do
  // Of `model`, and of one whose links are never shared.
  std::unique_ptr<const Layouts> layouts;
  std::unique_ptr<const NetworkModel> bare_model;
  std::unique_ptr<const Layouts> bare_layouts;
  // The same at every size of a sweep, and of 4,096 GPUs a hundred thousand links.
  std::unique_ptr<Cache<LoadKey, FabricLoad>> fabric_loads;

  const topology::Cluster& cluster() const { return wiring->cluster; }
  const topology::Router& router() const { return wiring->router; }
  const Layouts& layouts_of(const Ablation& without) const {
    return *(without.sharing || without.bandwidth ? bare_layouts : layouts);
  }
};

/// The network of a scenario's cluster; `nccl` is that of its version, none on a host.
Network make_network(const Scenario&, std::shared_ptr<const Wiring>, std::optional<NcclFacts> nccl,
                     const CalibrationTable&);

}  // namespace stepcast::sim
