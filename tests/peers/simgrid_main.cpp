// Ring and tree steps of SimGrid actors beside our stepped mode on the same platform, and the
// concurrent rings beside our fluid. Exit code 1 when a row lies outside its tolerance.
#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <numeric>

#include "peer_table.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/network/stepped/expansion.hpp"
#include "sim/scenario/catalogue.hpp"
#include "simgrid_actors.hpp"
#include "tests/engine/concurrent_rings.hpp"

namespace {

using namespace stepcast;
using namespace stepcast::peers;
using workloads::CollectiveKind;

constexpr double same_model = 1e-5;       // what remains is rounding
constexpr double fluid_tolerance = 5e-7;  // 6 digits

enum class Pace : std::uint8_t {
  nccl,       // edges at a rate of NCCL's, hops of NCCL's before a message is passed on
  raw,        // edges as fast as their links, hops of NCCL's
  latencies,  // edges as fast as their links; links have latencies, senders await the arrival
};

struct Case {
  std::string node;
  std::int64_t nodes;
  CollectiveKind kind;
  sim::Algorithm algorithm;
  Bytes bytes;
  Pace pace;
  bool narrow_leaves;  // 2:1 oversubscribed
};

/// A hop of NCCL's Simple protocol and its network's, tuning.cc v2.28.9; any would do.
constexpr Duration hop_in_node = 4'800_ns, hop_between = 19'600_ns;

struct Bench {
  topology::Cluster cluster;
  topology::StaticRouter router{cluster};
  sim::SteppedLayout layout;

  explicit Bench(const Case& c) : cluster(built(c)), layout(cluster, router, all(cluster)) {}

  static topology::Cluster built(const Case& c) {
    const sim::Catalogue catalogue = sim::Catalogue::standard();
    // Leaves of two nodes with half as many uplinks, or one leaf per rail for all.
    topology::FabricSpec fabric =
        catalogue.fabric(sim::toml_text(c.narrow_leaves ? "fat-tree" : "rail-optimized", "peers"));
    const topology::NodeSpec node = catalogue.node(sim::toml_text(c.node, "peers"));
    if (c.narrow_leaves) {
      fabric.oversubscription = 2;
      fabric.ports = 3 * node.nics;
    }
    return topology::Cluster::build(node, c.nodes, fabric);
  }
  static std::vector<std::int64_t> all(const topology::Cluster& cluster) {
    std::vector<std::int64_t> ranks(static_cast<std::size_t>(cluster.num_gpus()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  std::vector<BytesPerSecond> capacities() const {
    std::vector<BytesPerSecond> out;
    for (const topology::Link& link : cluster.links()) out.push_back(link.bandwidth);
    return out;
  }
};

double ours(const Bench& bench, const Case& c, const Talk& talk, std::int64_t channels) {
  sim::TransferGraph graph = sim::expand(bench.layout, {.kind = c.kind,
                                                        .algorithm = c.algorithm,
                                                        .protocol = sim::Protocol::simple,
                                                        .bytes = c.bytes,
                                                        .transfer = to_duration(talk.transfer),
                                                        .hop_in_node = talk.hop_in_node,
                                                        .hop_between_nodes = talk.hop_between,
                                                        .channels = channels});
  if (c.pace == Pace::latencies) graph.take_hops_from_links(bench.cluster.links());
  return seconds(sim::makespan(
      sim::run_transfers(graph, bench.capacities(), {.hold_on_hop = c.pace == Pace::latencies})));
}

double simgrid(const Bench& bench, const Case& c, const Talk& talk, std::uint32_t chunks) {
  const std::size_t n = bench.layout.num_ranks();
  if (c.algorithm == sim::Algorithm::tree)
    return simgrid_trees(bench.cluster, bench.layout, chunks, talk);
  if (c.algorithm == sim::Algorithm::p2p)
    return simgrid_all_to_all(bench.cluster, bench.layout, talk);
  const std::size_t steps = c.kind == CollectiveKind::all_reduce ? 2 * (n - 1) : n - 1;
  return simgrid_ring(bench.cluster, bench.layout, steps, talk);
}

void compare(PeerTable& table, const Case& c, const std::string& label) {
  const Bench bench(c);
  Talk talk{.bytes = static_cast<double>(c.bytes.value), .latencies = c.pace == Pace::latencies};
  if (c.pace != Pace::latencies) {
    talk.hop_in_node = hop_in_node;
    talk.hop_between = hop_between;
  }
  if (c.pace == Pace::nccl) {
    // Edges at 90 % of the NICs: rings carry all bytes on them, trees twice as much.
    const double nics =
        static_cast<double>(bench.cluster.node().nics) * bench.cluster.node().nic.value;
    talk.transfer = talk.bytes * (c.algorithm == sim::Algorithm::ring ? 1.0 : 2.0) / (0.9 * nics);
  }
  const std::int64_t channels = 2 * static_cast<std::int64_t>(bench.layout.num_channels());
  const sim::SteppedTerms terms{.kind = c.kind,
                                .algorithm = c.algorithm,
                                .protocol = sim::Protocol::simple,
                                .bytes = c.bytes,
                                .channels = channels};
  const auto chunks = static_cast<std::uint32_t>(
      std::ceil(talk.bytes / static_cast<double>(channels) / grain_bytes(terms, bench.layout)));
  const double peer = in_own_process([&] { return simgrid(bench, c, talk, chunks); });
  table.add(label, peer, ours(bench, c, talk, channels), same_model);
}

void compare_concurrent_rings(PeerTable& table, std::uint32_t hosts, std::uint32_t spines) {
  const double peer = in_own_process([&] { return simgrid_concurrent_rings(hosts, spines); });
  namespace rings = engine::concurrent_rings;
  const rings::Tree tree{hosts, spines};
  table.add(fmt::format("64 concurrent rings, {} hosts, {} spines", hosts, spines), peer,
            rings::makespan(tree, rings::transfers_of(tree, true)), fluid_tolerance);
}

void compare_all(PeerTable& table) {
  using sim::Algorithm;
  constexpr auto AG = CollectiveKind::all_gather, AR = CollectiveKind::all_reduce,
                 A2A = CollectiveKind::all_to_all;
  for (const std::uint32_t hosts : {256u, 2048u})
    for (const std::uint32_t spines : {32u, 8u}) compare_concurrent_rings(table, hosts, spines);
  compare(table, {"dgx-a100", 2, AG, Algorithm::ring, 64_MiB, Pace::raw, false},
          "ring AllGather, 2 x DGX A100, links' own rates");
  compare(table, {"dgx-a100", 2, AG, Algorithm::ring, 64_MiB, Pace::latencies, false},
          "the same, latencies of links");
  compare(table, {"dgx-h100", 8, AG, Algorithm::ring, 64_MiB, Pace::latencies, false},
          "ring AllGather, 8 x DGX H100, latencies of links");
  compare(table, {"dgx-h100", 8, AG, Algorithm::ring, 64_MiB, Pace::latencies, true},
          "the same under 2:1 oversubscribed leaves");
  compare(table, {"dgx-h100", 8, AG, Algorithm::ring, 64_MiB, Pace::nccl, false},
          "ring AllGather, 8 x DGX H100, NCCL's hops");
  compare(table, {"dgx-h100", 4, AR, Algorithm::ring, 1_MiB, Pace::nccl, false},
          "ring AllReduce of 1 MiB, 4 x DGX H100, NCCL's hops");
  compare(table, {"dgx-a100", 4, AR, Algorithm::tree, 64_MiB, Pace::nccl, false},
          "tree AllReduce, 4 x DGX A100, NCCL's hops");
  compare(table, {"dgx-h100", 8, AR, Algorithm::tree, 256_MiB, Pace::nccl, false},
          "tree AllReduce of 256 MiB, 8 x DGX H100, NCCL's hops");
  compare(table, {"dgx-h100", 8, AR, Algorithm::tree, 64_MiB, Pace::nccl, true},
          "tree AllReduce under 2:1 leaves, 8 x DGX H100");
  compare(table, {"dgx-h100", 8, A2A, Algorithm::p2p, 64_MiB, Pace::nccl, true},
          "AlltoAll under 2:1 leaves, 8 x DGX H100");
}

}  // namespace

int main() try {
  PeerTable table("SimGrid " PEER_VERSION);
  compare_all(table);
  table.print();
  return table.all_agree() ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "peer_simgrid: {}\n", error.what());
  return 1;
}
