#include "topology/rack.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "engine/check.hpp"

namespace stepcast::topology {
namespace {

/// Of `all` things of a domain, those of `gpus` out of its `before`.
std::int64_t share(std::int64_t all, std::int64_t gpus, std::int64_t before, const char* what,
                   const std::string& where) {
  if (all * gpus % before != 0)
    throw InputError(where,
                     fmt::format("{} of {} GPUs with {} {} leave no whole number of them", gpus,
                                 before, all, what),
                     "take a multiple or a half, or describe the node in a file of its own");
  return all * gpus / before;
}

}  // namespace

NodeSpec with_gpus(NodeSpec node, std::int64_t gpus, const std::string& where) {
  if (gpus == node.gpus) return node;
  if (gpus < 1) throw InputError(where, "a domain has one GPU at least", "64 of an NVL72");
  if (node.kind == NodeKind::hybrid_cube_mesh)
    throw InputError(where, fmt::format("the links of {} join {} GPUs", node.name, node.gpus),
                     "only domains behind switches can be resized");
  if (node.gpus_per_tray > 0 && gpus % node.gpus_per_tray != 0)
    throw InputError(where,
                     fmt::format("{} GPUs are no whole trays of {}", gpus, node.gpus_per_tray),
                     fmt::format("{} are", (gpus / node.gpus_per_tray + 1) * node.gpus_per_tray));
  const std::int64_t before = node.gpus;
  node.nics = share(node.nics, gpus, before, "NICs", where);
  node.pcie_switches = share(node.pcie_switches, gpus, before, "PCIe switches", where);
  node.sockets = share(node.sockets, gpus, before, "sockets", where);
  node.host_memory = node.host_memory * (static_cast<double>(gpus) / static_cast<double>(before));
  node.max_power = node.max_power * (static_cast<double>(gpus) / static_cast<double>(before));
  node.gpus = gpus;
  return node;
}

std::int64_t even_domain(const NodeSpec& node, std::int64_t gpus) {
  const std::int64_t step = std::max<std::int64_t>(1, node.gpus_per_tray);
  std::int64_t used = node.gpus - node.gpus % step;
  while (used > 0 && gpus % used != 0) used -= step;
  return used;
}

}  // namespace stepcast::topology
