#include "topology/node_layout.hpp"

#include <fmt/format.h>

#include "engine/check.hpp"

namespace stepcast::topology {
namespace {

void check_matrix(const NodeSpec& node, const std::string& origin) {
  const auto n = static_cast<std::size_t>(node.gpus);
  bool fits = node.nvlinks.size() == n;
  for (std::size_t i = 0; fits && i < n; ++i) {
    fits = node.nvlinks[i].size() == n && node.nvlinks[i][i] == 0;
    for (std::size_t j = 0; fits && j < i; ++j)
      fits = node.nvlinks[i][j] >= 0 && node.nvlinks[i][j] == node.nvlinks[j][i];
  }
  if (!fits)
    throw InputError(
        origin, fmt::format("nvlinks of node {} is no link table", node.name),
        fmt::format("give {0} rows of {0} link counts, symmetric, 0 on the diagonal", node.gpus));
}

void check_trays(const NodeSpec& node, const std::string& origin) {
  if (node.gpus_per_tray == 0) return;
  const std::int64_t trays = node.trays();
  const bool equal = node.gpus_per_tray > 0 && trays > 0 &&
                     trays * node.gpus_per_tray == node.gpus && node.nics % trays == 0 &&
                     node.pcie_switches % trays == 0 && node.sockets % trays == 0;
  if (!equal)
    throw InputError(origin,
                     fmt::format("node {}: {} GPUs, {} NICs, {} PCIe switches and {} sockets are "
                                 "no equal trays of {} GPUs",
                                 node.name, node.gpus, node.nics, node.pcie_switches, node.sockets,
                                 node.gpus_per_tray),
                     "gpus_per_domain in [cluster] resizes a domain with all that its trays hold");
  if (node.kind != NodeKind::nvswitch)
    throw InputError(origin, fmt::format("node {}: only NVSwitches join trays", node.name),
                     "take kind = \"nvswitch\", or leave gpus_per_tray out");
}

void check(const NodeSpec& node, const std::string& origin) {
  const auto demand = [&](bool holds, const char* what, const char* hint) {
    if (!holds) throw InputError(origin, fmt::format("node {}: {}", node.name, what), hint);
  };
  demand(node.gpus >= 1 && node.gpus <= 1024, "gpus must be 1 to 1024", "8 in a DGX");
  demand(node.nics >= 0 && node.nics <= 1024, "nics must be 0 to 1024", "8 in a DGX H100");
  demand(node.pcie_switches >= 0 && node.pcie_switches <= 1024, "pcie_switches must be 0 to 1024",
         "8 in a DGX H100");
  demand(node.sockets >= 1 && node.sockets <= 1024, "sockets must be 1 to 1024", "2 in a DGX");
  check_trays(node, origin);
  demand(node.pcie.value > 0, "pcie must be above zero", "\"63 GB/s\" is PCIe 5.0 x16");
  demand(node.sockets == node.trays() || node.socket.value > 0, "socket must be above zero",
         "give the bandwidth between two CPU sockets");
  demand(node.nics == 0 || node.nic.value > 0, "nic must be above zero", "e.g. \"400 Gbit/s\"");
  demand(node.nvlink_latency.count() >= 0 && node.nic_latency.count() >= 0 &&
             node.pcie_latency.count() >= 0 && node.socket_latency.count() >= 0,
         "a latency is negative", "give it as e.g. \"0.3 us\"");
  if (node.kind == NodeKind::pcie) return;
  demand(node.nvlink_per_link.value > 0, "nvlink_per_link must be above zero",
         "25 GB/s per direction from V100 to H100");
  if (node.kind == NodeKind::hybrid_cube_mesh) return check_matrix(node, origin);
  demand(node.nvswitches >= 1 && node.nvswitches <= 1024, "nvswitches must be 1 to 1024",
         "4 in a DGX H100");
  demand(node.gpu.nvlink_links >= node.nvswitches, "fewer NVLinks at a GPU than NVSwitches",
         "every GPU reaches every NVSwitch");
}

}  // namespace

void NodeLayout::connect(DeviceId a, DeviceId b, Link cable) {
  cable.bandwidth = cable.bandwidth * static_cast<double>(cable.count);
  cable.from = a;
  cable.to = b;
  links.push_back(cable);
  std::swap(cable.from, cable.to);
  links.push_back(cable);
}

void add_devices(NodeLayout& layout, const NodeSpec& node) {
  const auto add = [&](DeviceKind kind, std::int64_t count) {
    const auto first = static_cast<DeviceId>(layout.devices.size());
    for (std::int64_t i = 0; i < count; ++i)
      layout.devices.push_back({.kind = kind, .node = 0, .index = i});
    return first;
  };
  add(DeviceKind::gpu, node.gpus);
  layout.first_nvswitch =
      add(DeviceKind::nvswitch, node.kind == NodeKind::nvswitch ? node.nvswitches : 0);
  layout.first_pcie_switch = add(DeviceKind::pcie_switch, node.pcie_switches);
  layout.first_cpu = add(DeviceKind::cpu, node.sockets);
  layout.first_nic = add(DeviceKind::nic, node.nics);
}

NodeLayout lay_out_node(const NodeSpec& node, const std::string& origin) {
  check(node, origin);
  NodeLayout layout;
  add_devices(layout, node);
  switch (node.kind) {
    case NodeKind::hybrid_cube_mesh:
      add_hybrid_cube_mesh(layout, node);
      break;
    case NodeKind::nvswitch:
      add_nvswitches(layout, node);
      break;
    case NodeKind::pcie:
      break;
  }
  add_pcie_tree(layout, node);
  return layout;
}

}  // namespace stepcast::topology
