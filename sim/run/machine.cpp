#include "sim/run/machine.hpp"

#include "sim/network/ablation.hpp"
#include "sim/network/host/network.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/run/remembered_network.hpp"
#include "sim/scenario/cluster_warnings.hpp"

namespace stepcast::sim {
namespace {

constexpr std::size_t most_fabric_loads = 64;  // kinds x algorithms

std::unique_ptr<const NetworkModel> model_of(const Scenario& s, const Network& network,
                                             const CalibrationTable& table) {
  if (!network.nccl) {
    BetweenHosts between;
    if (s.nodes > 1)
      between = {std::make_unique<LinkLoads>(network.cluster(), network.router()), s.node.nic};
    return std::make_unique<HostNetwork>(s.node.gpu, table.collectives, s.origin,
                                         std::move(between));
  }
  return std::make_unique<RememberedNetwork>(std::make_unique<NcclNetwork>(
      network.cluster(), network.router(), *network.nccl, table.collectives, s.nccl_overrides));
}

std::vector<std::string> warnings_of(const Scenario& s, const std::optional<NcclFacts>& nccl) {
  std::vector<std::string> out = cluster_warnings(s);
  if (!nccl) return out;
  NcclOverrides overrides = s.nccl_overrides;
  overrides.fabric_has_sharp = s.fabric.sharp;
  for (std::string& warning : nccl_warnings(nccl->tuning, s.node, s.nodes, overrides))
    out.push_back(std::move(warning));
  return out;
}

}  // namespace

Wiring::Wiring(const topology::NodeSpec& node, std::int64_t nodes,
               const topology::FabricSpec& fabric, const std::string& origin)
    : Wiring(topology::Cluster::build(node, nodes, fabric, origin)) {}
Wiring::Wiring(topology::Cluster of) : cluster(std::move(of)), router(cluster) {}

Network make_network(const Scenario& s, std::shared_ptr<const Wiring> wiring,
                     std::optional<NcclFacts> nccl, const CalibrationTable& table) {
  Network out;
  out.wiring = std::move(wiring);
  out.nccl = std::move(nccl);
  out.model = model_of(s, out, table);
  out.warnings = warnings_of(s, out.nccl);
  out.layouts = std::make_unique<Layouts>(out.cluster(), *out.model);
  out.bare_model = std::make_unique<AblatedNetwork>(*out.model, Ablation{.sharing = true});
  out.bare_layouts = std::make_unique<Layouts>(out.cluster(), *out.bare_model);
  out.fabric_loads = std::make_unique<Cache<LoadKey, FabricLoad>>(most_fabric_loads);
  return out;
}

}  // namespace stepcast::sim
