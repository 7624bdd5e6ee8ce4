// Group targeted: the network. Concurrent rings through the fluid layer, whose gate is 15 us of
// thread CPU time per collective at full bisection and 40 us at 4:1 (SimGrid 3.32 takes 930 and
// 1,080 us on the same work); and one large collective predicted after start-up, in at most 1 ms.
#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

#include "engine/run.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/network/links/picture.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/scenario/catalogue.hpp"
#include "tests/engine/concurrent_rings.hpp"
#include "tests/engine/random_flows.hpp"
#include "tests/session.hpp"
#include "topology/rack.hpp"
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

/// Point to point in a congested tree: thousands of flows in one component, two events a flow.
/// Arguments: hosts, spines, flows.
void congested_flows(benchmark::State& state) {
  const rings::Tree tree{static_cast<std::uint32_t>(state.range(0)),
                         static_cast<std::uint32_t>(state.range(1))};
  const auto flows =
      engine::random_flows::flows(tree, static_cast<std::uint32_t>(state.range(2)), 1);
  for (auto _ : state) {
    engine::Fluid fluid(tree.capacities());
    Time last{};
    engine::random_flows::run(fluid, flows, [&](Time now, const auto&) { last = now; });
    const engine::Fluid::Counters& did = fluid.counters();
    state.counters["makespan_s"] = seconds(last);
    state.counters["changed_rates"] = static_cast<double>(did.changed_rates);
    state.counters["moves"] = static_cast<double>(did.moves);
  }
}
BENCHMARK(congested_flows)
    ->Name("targeted/8192 random flows on 2048 hosts")
    ->ArgsProduct({{2048}, {32, 8}, {8192}})
    ->ArgNames({"hosts", "spines", "flows"})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(congested_flows)
    ->Name("targeted/1024 congested flows over 8 spines")
    ->Args({512, 8, 1024})
    ->ArgNames({"hosts", "spines", "flows"})
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
    benchmark::DoNotOptimize(network.time_of(sim::plain_collective(kind, Bytes(404'000'000)),
                                             sim::shape_of(cluster, ranks)));
    const auto loads = network.loads_of({kind, sim::Algorithm::ring}, ranks);
    state.counters["links"] = static_cast<double>(loads.size());
  }
}
BENCHMARK(all_gather)
    ->Name("targeted/all-gather predicted")
    ->ArgsProduct({{256}, {0, 1, 2}})
    ->ArgNames({"nodes", "routing"})
    ->Unit(benchmark::kMicrosecond);

/// Every rank's lane joins one collective.
engine::System lone_collective(const topology::Cluster& cluster,
                               const std::vector<sim::LinkLoad>& loads, double bytes,
                               BytesPerSecond fastest) {
  engine::System s;
  const auto ranks = static_cast<std::uint32_t>(cluster.num_gpus());
  s.host_costs = {Duration{}};
  s.stretch.assign(engine::num_states, 1.0);
  s.communicator_of.assign(1, std::vector<std::uint32_t>(ranks, 0));
  s.num_patterns = 1;
  s.transfers = {{bytes, fastest, engine::Traffic::tensor, 0}};
  engine::Communicator all{.members = std::vector<std::uint32_t>(ranks), .pattern = 0, .loads = {}};
  std::iota(all.members.begin(), all.members.end(), 0U);
  s.communicators.push_back(std::move(all));
  sim::LinkPicture(cluster, std::vector<std::vector<sim::LinkLoad>>{loads})
      .put_on(s, {fastest.value});
  engine::ProgramBuilder program(2);
  program.join(1, 0, 0, 0);
  program.wait(0, program.record(1));
  s.roles.push_back(program.take());
  s.role_of_rank.assign(ranks, 0);
  return s;
}

/// An AlltoAll over 2,048 ranks: its time alone, its loads, its links, the event loop. The gate is
/// 50 ms. Arguments: a rack of 64 used GPUs or a DGX H100; by NCCL or by kernels that know nodes.
void all_to_all(benchmark::State& state) {
  const bool rack = state.range(0) != 0, aware = state.range(1) != 0;
  const sim::Catalogue& catalogue = stepcast::catalogue();
  topology::NodeSpec node =
      catalogue.node(sim::toml_text(rack ? "gb200-nvl72" : "dgx-h100", "bench"));
  if (rack) node = topology::with_gpus(std::move(node), 64, "bench");
  const auto cluster = topology::Cluster::build(
      node, 2048 / node.gpus, catalogue.fabric(sim::toml_text("rail-optimized", "bench")));
  const topology::StaticRouter router(cluster);
  const sim::NcclNetwork network(cluster, router, catalogue.nccl("2.28"));
  std::vector<std::int64_t> ranks(2048);
  std::iota(ranks.begin(), ranks.end(), 0);
  auto collective =
      sim::plain_collective(workloads::CollectiveKind::all_to_all, Bytes(469'762'048));
  if (aware)
    collective.tokens = {.dispatcher = workloads::Dispatcher::node_aware,
                         .tokens = 4096,
                         .row_bytes = 14336,
                         .experts = 2048,
                         .per_token = 8};
  for (auto _ : state) {
    const sim::CollectiveTime time = network.time_of(collective, sim::shape_of(cluster, ranks));
    const auto loads = network.loads_of(sim::delivery_of(collective.kind, time), ranks);
    const auto bytes = static_cast<double>(collective.bytes.value);
    const auto result = engine::run(
        lone_collective(cluster, loads, bytes, collective.bytes / time.duration), {.cold = true});
    state.counters["links"] = static_cast<double>(loads.size());
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK(all_to_all)
    ->Name("targeted/all-to-all of 2048 ranks")
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->ArgNames({"rack", "node_aware"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast::bench
