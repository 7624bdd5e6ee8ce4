// A ring AllGather of 16 hosts at 400 Gbit/s under one switch: ns-3's packets beside our fluid.
// Exit code 1 when a row lies outside its tolerance.
#include <fmt/format.h>

#include <exception>

#include "ns3_ring.hpp"
#include "peer_table.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/network/stepped/expansion.hpp"
#include "sim/scenario/catalogue.hpp"

namespace {

using namespace stepcast;
using namespace stepcast::peers;

/// What remains with headers: the switch passes a packet on only when it has all of it, which adds
/// one packet's time to every step.
constexpr double store_and_forward_tolerance = 0.006;
constexpr double tolerance = 1e-4;  // with both

/// One GPU on each of 16 nodes, all NICs of a rail under one leaf.
struct Hosts {
  topology::Cluster cluster;
  topology::StaticRouter router{cluster};
  sim::SteppedLayout layout;

  explicit Hosts(std::int64_t nodes)
      : cluster(built(nodes)), layout(cluster, router, first_gpus(cluster)) {}

  static topology::Cluster built(std::int64_t nodes) {
    const sim::Catalogue catalogue = sim::Catalogue::standard();
    return topology::Cluster::build(catalogue.node(sim::toml_text("dgx-h100", "peers")), nodes,
                                    catalogue.fabric(sim::toml_text("rail-optimized", "peers")));
  }
  static std::vector<std::int64_t> first_gpus(const topology::Cluster& cluster) {
    std::vector<std::int64_t> ranks;
    for (std::int64_t node = 0; node < cluster.num_nodes(); ++node)
      ranks.push_back(node * cluster.node().gpus);
    return ranks;
  }
};

/// The same ring through the fluid, `chunk` bytes a step, with a longer hop.
double fluid_ring(const Hosts& hosts, double chunk, Duration extra_hop) {
  const auto n = static_cast<double>(hosts.layout.num_ranks());
  sim::TransferGraph graph =
      sim::expand(hosts.layout, {.kind = workloads::CollectiveKind::all_gather,
                                 .algorithm = sim::Algorithm::ring,
                                 .protocol = sim::Protocol::simple,
                                 .bytes = Bytes(static_cast<std::int64_t>(chunk * n))});
  graph.take_hops_from_links(hosts.cluster.links(), extra_hop);
  std::vector<BytesPerSecond> capacities;
  for (const topology::Link& link : hosts.cluster.links()) capacities.push_back(link.bandwidth);
  return seconds(sim::makespan(sim::run_transfers(graph, capacities)));
}

void compare(PeerTable& table, const Hosts& hosts, std::uint32_t chunk, std::uint32_t payload) {
  const auto path = hosts.router.path(hosts.cluster.gpu(hosts.layout.ranks()[0]),
                                      hosts.cluster.gpu(hosts.layout.ranks()[1]), 0);
  const PacketRing ring{.hosts = static_cast<std::uint32_t>(hosts.layout.num_ranks()),
                        .steps = static_cast<std::uint32_t>(hosts.layout.num_ranks() - 1),
                        .chunk = chunk,
                        .payload = payload,
                        .bits_per_second = hosts.cluster.node().nic.value * 8,
                        .latency = seconds(latency_of(hosts.cluster, path))};
  const double peer = in_own_process([&] { return ns3_ring(ring); });
  const std::string what = fmt::format("{} hosts, {} steps of {} KiB, packets of {} B", ring.hosts,
                                       ring.steps, chunk >> 10, payload);
  const double headers = static_cast<double>(header_bytes) / payload;
  const double on_wire = chunk * (1 + headers);
  const Duration packet = to_duration((payload + header_bytes) / hosts.cluster.node().nic.value);
  table.add(what, peer, fluid_ring(hosts, chunk, {}), headers + store_and_forward_tolerance);
  table.add("  with headers", peer, fluid_ring(hosts, on_wire, {}), store_and_forward_tolerance);
  table.add("  and a whole packet in the switch", peer, fluid_ring(hosts, on_wire, packet),
            tolerance);
}

}  // namespace

int main() try {
  PeerTable table("ns-3 " PEER_VERSION);
  const Hosts hosts(16);
  compare(table, hosts, 1 << 20, 4096);
  compare(table, hosts, 4 << 20, 4096);
  compare(table, hosts, 1 << 20, 1024);
  table.print();
  return table.all_agree() ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "peer_ns3: {}\n", error.what());
  return 1;
}
