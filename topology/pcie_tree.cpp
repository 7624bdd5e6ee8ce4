// PCIe switches, CPU sockets and NICs; the whole of a PCIe-only node, and one half of any other.
//
//   DGX-1V: 4 switches, each 2 GPUs + 1 NIC        DGX A100: 4 switches, each 2 GPUs + 2 NICs
//
//      cpu0 ------socket------ cpu1                   cpu0 ------socket------ cpu1
//      /  \                    /  \                   /  \                    /  \   .
//    sw0   sw1              sw2    sw3              sw0   sw1              sw2    sw3
//   / | \   ...                   / | \            / | | \   ...                / | | \   .
//  g0 g1 nic0                   g6 g7 nic3       g0 g1 nic0 nic1             g6 g7 nic6 nic7
//
//   DGX H100: 8 switches, one for each pair of GPU and NIC; 4 on each socket.
//
// Every line but the socket link is one x16 link. Without PCIe switches the GPUs and NICs hang on
// the sockets. GPUs and NICs are spread evenly and in order. Sockets of one tray are joined, those
// of different trays of a rack are not.
#include "topology/node_layout.hpp"

#include <algorithm>

namespace stepcast::topology {

void add_pcie_tree(NodeLayout& layout, const NodeSpec& node) {
  const auto cpu = [&](std::int64_t i) { return layout.first_cpu + static_cast<DeviceId>(i); };
  const auto home = [&](std::int64_t index, std::int64_t count) {
    if (node.pcie_switches == 0) return cpu(place_of(index, count, node.sockets));
    return layout.first_pcie_switch +
           static_cast<DeviceId>(place_of(index, count, node.pcie_switches));
  };
  const Link pcie{
      .kind = LinkKind::pcie, .bandwidth = node.pcie, .latency = node.pcie_latency, .count = 1};
  const Link socket{.kind = LinkKind::socket,
                    .bandwidth = node.socket,
                    .latency = node.socket_latency,
                    .count = 1};

  for (std::int64_t g = 0; g < node.gpus; ++g)
    layout.connect(static_cast<DeviceId>(g), home(g, node.gpus), pcie);
  for (std::int64_t n = 0; n < node.nics; ++n)
    layout.connect(layout.first_nic + static_cast<DeviceId>(n), home(n, node.nics), pcie);
  for (std::int64_t s = 0; s < node.pcie_switches; ++s)
    layout.connect(layout.first_pcie_switch + static_cast<DeviceId>(s),
                   cpu(place_of(s, node.pcie_switches, node.sockets)), pcie);
  const std::int64_t in_tray = node.sockets / node.trays();
  for (std::int64_t a = 0; a < node.sockets; ++a)
    for (std::int64_t b = a + 1; b < (a / in_tray + 1) * in_tray; ++b)
      layout.connect(cpu(a), cpu(b), socket);
}

/// GPUs under one switch share its way up; what moves passes the processors' memory.
HostShare host_share(const NodeSpec& node) {
  const auto gpus = static_cast<double>(node.gpus);
  const double ways = node.pcie_switches > 0 ? static_cast<double>(node.pcie_switches) : gpus;
  HostShare out{node.host_link, node.host_memory / gpus};
  if (node.host_link.value == 0) out.link = node.pcie * std::min(1.0, ways / gpus);
  if (out.memory.value > 0) out.link = std::min(out.link, out.memory);
  return out;
}

}  // namespace stepcast::topology
