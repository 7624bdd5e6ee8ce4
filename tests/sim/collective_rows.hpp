// The collective measurements that tests compare with, and the machines they were taken on. Figures
// of the published table (bus bandwidth in GB/s as nccl-tests defines it), sources beside them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "architectures.hpp"
#include "sim/network/model.hpp"
#include "sim/tables/calibration_table.hpp"
#include "topology/specs.hpp"

namespace stepcast::sim {

struct MeasuredCurve {
  std::string gpu, collective;
  std::int64_t ranks, nodes;
  std::string source;
  std::vector<std::pair<std::int64_t, double>> mib_and_busbw;
};

inline const std::vector<MeasuredCurve>& study_all_reduce() {
  static const std::string source =
      "arXiv 2411.13055 Fig. 2, digitised +-3 GB/s, NCCL 2.20, 8 x 400 Gbit/s InfiniBand";
  static const std::vector<MeasuredCurve> curves{
      {"H100-SXM5-80GB",
       "allreduce",
       32,
       4,
       source,
       {{1, 19},
        {2, 29},
        {4, 47},
        {8, 68},
        {16, 115},
        {32, 167},
        {64, 217},
        {128, 255},
        {256, 271},
        {512, 317},
        {1024, 338},
        {2048, 348},
        {4096, 353},
        {8192, 356},
        {16384, 361}}},
      {"H100-SXM5-80GB",
       "allreduce",
       128,
       16,
       source,
       {{8, 43},
        {16, 73},
        {32, 114},
        {64, 163},
        {128, 219},
        {256, 264},
        {512, 302},
        {1024, 323},
        {2048, 338},
        {4096, 347},
        {8192, 354},
        {16384, 359}}},
      {"H100-SXM5-80GB",
       "allreduce",
       512,
       64,
       source,
       {{1, 5},
        {2, 9},
        {4, 18},
        {8, 28},
        {16, 46},
        {32, 88},
        {64, 137},
        {128, 181},
        {256, 246},
        {512, 290},
        {1024, 304},
        {2048, 328},
        {4096, 330},
        {8192, 342},
        {16384, 348}}},
      {"H100-SXM5-80GB",
       "allreduce",
       2048,
       256,
       source,
       {{16, 42},
        {32, 68},
        {64, 118},
        {128, 171},
        {256, 223},
        {512, 262},
        {1024, 303},
        {2048, 314},
        {4096, 321},
        {8192, 332},
        {16384, 340}}},
  };
  return curves;
}

inline const std::vector<MeasuredCurve>& single_node_curves() {
  static const std::vector<MeasuredCurve> curves{
      {"A100-SXM4-80GB",
       "allreduce",
       8,
       1,
       "Azure in-place nccl-tests, NCCL 2.18.5",
       {{1, 36.22},
        {2, 53.54},
        {4, 71.43},
        {8, 89.99},
        {16, 109.22},
        {32, 132.77},
        {64, 166.63},
        {128, 174.18},
        {256, 213.87},
        {512, 221.58},
        {1024, 228.1},
        {2048, 230.22},
        {4096, 230.48},
        {8192, 231.58}}},
      {"A100-SXM4-40GB",
       "allreduce",
       8,
       1,
       "superbenchmark sample log, one process",
       {{1, 24.54},
        {2, 39.26},
        {4, 65.52},
        {8, 90.63},
        {16, 129.9},
        {32, 156.89},
        {64, 200.91},
        {128, 202.11},
        {256, 222.4},
        {512, 223.68},
        {1024, 230.29},
        {2048, 231.76},
        {4096, 234.37},
        {8192, 235.26}}},
      {"A100-SXM4-40GB",
       "allgather",
       8,
       1,
       "superbenchmark sample log, one process",
       {{1, 12.58},
        {2, 23.75},
        {4, 36.43},
        {8, 59.44},
        {16, 87.52},
        {32, 110.46},
        {64, 154.65},
        {128, 168.12},
        {256, 197.01},
        {512, 203.88},
        {1024, 212.88},
        {2048, 217.01},
        {4096, 220.85},
        {8192, 223.39}}},
      {"A100-SXM4-40GB",
       "reducescatter",
       8,
       1,
       "superbenchmark sample log, one process",
       {{1, 12.68},
        {2, 22.76},
        {4, 33.72},
        {8, 49.84},
        {16, 96.34},
        {32, 122.06},
        {64, 164.89},
        {128, 190.01},
        {256, 211.84},
        {512, 216.58},
        {1024, 223.54},
        {2048, 224.85},
        {4096, 229.15},
        {8192, 231.52}}},
      {"V100-SXM2",
       "allreduce",
       8,
       1,
       "vTrain nccl-tests look-up table",
       {{1, 22.96},
        {2, 36.22},
        {4, 48.64},
        {8, 61.69},
        {16, 107.23},
        {32, 122.51},
        {64, 128.88},
        {128, 132.17},
        {256, 133.18},
        {512, 134.13},
        {1024, 134.51}}},
      {"H100-SXM5-80GB",
       "allreduce",
       8,
       1,
       "vidur CUPTI NCCL-kernel median",
       {{1, 54}, {4, 143.9}, {8, 198.4}, {16, 255.3}, {32, 299.6}, {64, 364.7}}},
  };
  return curves;
}

inline workloads::CollectiveKind kind_of(const MeasuredCurve& curve) {
  if (curve.collective == "allgather") return workloads::CollectiveKind::all_gather;
  if (curve.collective == "reducescatter") return workloads::CollectiveKind::reduce_scatter;
  return workloads::CollectiveKind::all_reduce;
}

inline GroupShape shape_of(const MeasuredCurve& curve) {
  return {curve.ranks, curve.nodes, curve.ranks / curve.nodes, 1};
}

/// busbw = bytes x factor / time.
inline Duration measured_time(const MeasuredCurve& curve, std::int64_t mib, double busbw) {
  const double factor = bus_factor(kind_of(curve), curve.ranks);
  return to_duration(static_cast<double>(mib << 20) * factor / (busbw * 1e9));
}

inline std::vector<CollectiveRow> rows_of(const std::vector<MeasuredCurve>& curves) {
  std::vector<CollectiveRow> rows;
  for (const MeasuredCurve& curve : curves)
    for (const auto& [mib, busbw] : curve.mib_and_busbw) {
      CollectiveRow row;
      row.gpu = curve.gpu;
      row.collective = curve.collective;
      row.ranks = curve.ranks;
      row.nodes = curve.nodes;
      row.gpus_per_node = 8;
      row.bytes = Bytes(mib << 20);
      row.duration = measured_time(curve, mib, busbw);
      row.fabric = curve.nodes == 1 ? "nvlink" : "infiniband";
      if (curve.nodes > 1) row.node_bandwidth = 400_GBps;
      row.source = {curve.source, curve.source, "medium"};
      rows.push_back(row);
    }
  return rows;
}

/// A DGX with the numbers of the catalogue that collectives depend on.
inline topology::NodeSpec dgx(topology::NcclGeneration generation) {
  topology::NodeSpec node;
  node.gpu.architecture = architecture(generation);
  node.kind = topology::NodeKind::nvswitch;
  node.nvlink_per_link = generation == topology::NcclGeneration::blackwell ? 50_GBps : 25_GBps;
  node.nvlink_latency = 500_ns;
  node.nics = 8;
  node.nic_latency = 500_ns;
  node.pcie_switches = 4;
  node.pcie_latency = 500_ns;
  node.socket = 20_GBps;
  node.cpu = "intel";
  switch (generation) {
    case topology::NcclGeneration::volta:
      node.gpu.name = "v100-sxm2-32gb";
      node.gpu.nvlink_links = 6;
      node.kind = topology::NodeKind::hybrid_cube_mesh;
      node.nvlinks = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
                      {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                      {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
      node.nics = 4;
      node.nic = 100_Gbps;
      node.pcie = 15.75_GBps;
      break;
    case topology::NcclGeneration::ampere:
      node.gpu.name = "a100-sxm4-80gb";
      node.gpu.nvlink_links = 12;
      node.nvswitches = 6;
      node.nic = 200_Gbps;
      node.pcie = 31.5_GBps;
      node.cpu = "amd";
      break;
    case topology::NcclGeneration::host:  // never asked for
    case topology::NcclGeneration::hopper:
    case topology::NcclGeneration::blackwell:
      node.gpu.name = "h100-sxm5-80gb";
      node.gpu.nvlink_links = 18;
      node.nvswitches = 4;
      node.nic = 400_Gbps;
      node.pcie_switches = 8;
      node.pcie = 63_GBps;
      break;
  }
  node.gpu.nvlink = node.nvlink_per_link * static_cast<double>(node.gpu.nvlink_links);
  return node;
}

inline topology::NodeSpec dgx_of(const MeasuredCurve& curve) {
  if (curve.gpu.starts_with("V100")) return dgx(topology::NcclGeneration::volta);
  if (curve.gpu.starts_with("A100")) return dgx(topology::NcclGeneration::ampere);
  return dgx(topology::NcclGeneration::hopper);
}

}  // namespace stepcast::sim
