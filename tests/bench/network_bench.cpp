// Group targeted: the network. Concurrent rings through the fluid layer, whose gate is 15 us of
// thread CPU time per collective at full bisection and 40 us at 4:1 (SimGrid 3.32 takes 930 and
// 1,080 us on the same work); and one large collective predicted after start-up, in at most 1 ms.
#include <benchmark/benchmark.h>

#include <numeric>

#include "sim/files/toml_value.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/scenario/catalogue.hpp"
#include "tests/engine/concurrent_rings.hpp"
#include "tests/engine/random_flows.hpp"
#include "tests/session.hpp"
#include "topology/router.hpp"

namespace stepcast::bench {
namespace {

namespace rings = engine::concurrent_rings;

/// Arguments: spines of the tree of 2,048 hosts; whether every edge of a ring is its own flow.
void concurrent_rings(benchmark::State& state) {
  const rings::Tree tree{2048, static_cast<std::uint32_t>(state.range(0))};
  const auto transfers = rings::transfers_of(tree, state.range(1) != 0);
  for (auto _ : state) state.counters["makespan_s"] = rings::makespan(tree, transfers);
  constexpr double collectives = rings::num_collectives * rings::num_rounds;
  state.counters["per_collective"] = benchmark::Counter(
      collectives, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(concurrent_rings)
    ->Name("targeted/64 rings on 2048 hosts")
    ->ArgsProduct({{32, 8}, {0, 1}})
    ->ArgNames({"spines", "edges_alone"})
    ->Unit(benchmark::kMillisecond);

/// Point to point in a congested tree: thousands of flows in one component, 16,384 events.
void congested_flows(benchmark::State& state) {
  const rings::Tree tree{2048, 32};
  const auto flows = engine::random_flows::flows(tree, 8192, 1);
  for (auto _ : state) {
    engine::Fluid fluid(tree.capacities());
    Time last{};
    engine::random_flows::run(fluid, flows, [&](Time now, const auto&) { last = now; });
    const engine::Fluid::Counters& did = fluid.counters();
    state.counters["makespan_s"] = seconds(last);
    state.counters["changed_rates"] = static_cast<double>(did.changed_rates);
    state.counters["solved_flows"] = static_cast<double>(did.solved_flows);
  }
}
BENCHMARK(congested_flows)
    ->Name("targeted/8192 random flows on 2048 hosts")
    ->Unit(benchmark::kMillisecond);

/// time_of() and loads_of() of an AllGather of 404 MB over all GPUs of so many DGX H100.
void all_gather(benchmark::State& state) {
  const std::int64_t nodes = state.range(0);
  const sim::Catalogue& catalogue = stepcast::catalogue();
  topology::FabricSpec fabric = catalogue.fabric(sim::toml_text("rail-optimized", "bench"));
  fabric.routing = static_cast<topology::Routing>(state.range(1));
  const auto cluster =
      topology::Cluster::build(catalogue.node(sim::toml_text("dgx-h100", "bench")), nodes, fabric);
  const topology::StaticRouter router(cluster);
  const sim::NcclNetwork network(cluster, router, catalogue.nccl("2.20"));
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(cluster.num_gpus()));
  std::iota(ranks.begin(), ranks.end(), 0);
  constexpr auto kind = workloads::CollectiveKind::all_gather;
  for (auto _ : state) {
    benchmark::DoNotOptimize(network.time_of(kind, Bytes(404'000'000), workloads::Dtype::bf16,
                                             sim::shape_of(cluster, ranks)));
    const auto loads = network.loads_of(kind, sim::Algorithm::ring, ranks);
    state.counters["links"] = static_cast<double>(loads.size());
  }
}
BENCHMARK(all_gather)
    ->Name("targeted/all-gather predicted")
    ->ArgsProduct({{256}, {0, 1, 2}})
    ->ArgNames({"nodes", "routing"})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stepcast::bench
