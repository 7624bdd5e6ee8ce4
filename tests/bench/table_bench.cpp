// Group targeted: what every run pays before its first event.
#include <benchmark/benchmark.h>

#include "sim/calibrated_kernels.hpp"
#include "sim/calibration_table.hpp"
#include "topology/cluster.hpp"

namespace stepcast::bench {
namespace {

void read_published(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(sim::read_calibration(sim::published_calibration()));
}
BENCHMARK(read_published)->Name("targeted/read the published table")->Unit(benchmark::kMillisecond);

void build_cluster(benchmark::State& state) {
  topology::NodeSpec node;
  node.name = "bench";
  node.kind = topology::NodeKind::nvswitch;
  node.gpus = 8;
  node.gpu.nvlink = 450_GBps;
  node.gpu.nvlink_links = 18;
  node.nvswitches = 4;
  node.nvlink_per_link = 25_GBps;
  node.nics = 8;
  node.nic = 400_Gbps;
  node.pcie_switches = 8;
  node.pcie = 63_GBps;
  topology::FabricSpec fabric;
  fabric.kind = topology::FabricKind::rail_optimized;
  for (auto _ : state)
    benchmark::DoNotOptimize(topology::Cluster::build(node, state.range(0), fabric));
}
BENCHMARK(build_cluster)
    ->Name("targeted/build a cluster of so many DGX H100")
    ->Arg(256)
    ->Arg(2048)
    ->Arg(8192)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast::bench
