// Group targeted: what every run pays before its first event.
#include <benchmark/benchmark.h>

#include "sim/kernels/calibrated_kernels.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/tables/calibration_table.hpp"
#include "tests/session.hpp"
#include "topology/cluster.hpp"

namespace stepcast::bench {
namespace {

void read_published(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(sim::read_calibration(sim::published_calibration()));
}
BENCHMARK(read_published)->Name("targeted/read the published table")->Unit(benchmark::kMillisecond);

void build_cluster(benchmark::State& state) {
  const sim::Catalogue& catalogue = stepcast::catalogue();
  const topology::NodeSpec node = catalogue.node(sim::toml_text("dgx-h100", "bench"));
  const topology::FabricSpec fabric = catalogue.fabric(sim::toml_text("rail-optimized", "bench"));
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
