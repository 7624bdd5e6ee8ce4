// The machines of the tests, with the numbers of the catalogue written out.
#pragma once

#include "topology/cluster.hpp"

namespace stepcast::topology {

inline NodeSpec dgx_1v() {
  NodeSpec node;
  node.name = "dgx-1v";
  node.kind = NodeKind::hybrid_cube_mesh;
  node.gpu.nvlink_links = 6;
  node.nvlinks = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
                  {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                  {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
  node.nvlink_per_link = 25_GBps;
  node.nvlink_latency = 600_ns;
  node.nics = 4;
  node.nic = 100_Gbps;
  node.nic_latency = 200_ns;
  node.pcie_switches = 4;
  node.pcie = 15.75_GBps;
  node.pcie_latency = 500_ns;
  node.socket = 20.8_GBps;
  node.socket_latency = 150_ns;
  node.cpu = "intel";
  return node;
}

inline NodeSpec dgx_a100() {
  NodeSpec node = dgx_1v();
  node.name = "dgx-a100";
  node.kind = NodeKind::nvswitch;
  node.nvlinks.clear();
  node.nvswitches = 6;
  node.gpu.nvlink_links = 12;
  node.nics = 8;
  node.nic = 200_Gbps;
  node.pcie = 31.5_GBps;
  node.cpu = "amd";
  return node;
}

inline NodeSpec dgx_h100() {
  NodeSpec node = dgx_a100();
  node.name = "dgx-h100";
  node.nvswitches = 4;
  node.gpu.nvlink_links = 18;
  node.nic = 400_Gbps;
  node.pcie_switches = 8;
  node.pcie = 63_GBps;
  node.cpu = "intel";
  return node;
}

/// A rack: 18 trays of 4 GPUs in one NVLink domain.
inline NodeSpec nvl72() {
  NodeSpec node = dgx_h100();
  node.name = "nvl72";
  node.gpus = node.nics = 72;
  node.gpus_per_tray = 4;
  node.nvswitches = 18;
  node.nvlink_per_link = 50_GBps;
  node.pcie_switches = 0;
  node.sockets = 36;
  node.cpu = "arm";
  return node;
}

inline NodeSpec pcie_node() {
  NodeSpec node = dgx_a100();
  node.name = "pcie";
  node.kind = NodeKind::pcie;
  node.nvswitches = 0;
  node.gpu.nvlink_links = 0;
  node.nics = 2;
  return node;
}

inline FabricSpec rail_optimized() {
  return {.name = "rail-optimized",
          .kind = FabricKind::rail_optimized,
          .switch_latency = 130_ns,
          .cable_latency = 100_ns};
}

inline FabricSpec fat_tree() {
  FabricSpec fabric = rail_optimized();
  fabric.name = "fat-tree";
  fabric.kind = FabricKind::fat_tree;
  return fabric;
}

}  // namespace stepcast::topology
