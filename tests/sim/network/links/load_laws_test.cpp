// What all links of a kind carry together is what the algorithm moves in all.
#include <catch2/catch.hpp>
#include <map>

#include "sim/network/links/loads.hpp"
#include "tests/sim/collective_rows.hpp"
#include "topology/cluster.hpp"
#include "topology/router.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::LinkKind;
using topology::NcclGeneration;
using workloads::CollectiveKind;

namespace {

constexpr auto AR = CollectiveKind::all_reduce;
constexpr auto AG = CollectiveKind::all_gather;
constexpr auto RS = CollectiveKind::reduce_scatter;
constexpr double unit = 1.0 / 1024;

struct Machine {
  Machine(NcclGeneration architecture, std::int64_t nodes,
          topology::Routing routing = topology::Routing::destination)
      : cluster(topology::Cluster::build(dgx(architecture), nodes, fabric(routing))),
        router(cluster),
        loads(cluster, router) {}

  static topology::FabricSpec fabric(topology::Routing routing) {
    topology::FabricSpec spec;
    spec.name = "test";
    spec.kind = topology::FabricKind::rail_optimized;
    spec.ports = 16;  // units of 8 nodes: rings of 16 cross spines
    spec.switch_latency = 150_ns;
    spec.cable_latency = 25_ns;
    spec.routing = routing;
    return spec;
  }

  topology::Cluster cluster;
  topology::StaticRouter router;
  LinkLoads loads;
};

std::vector<std::int64_t> strided(std::int64_t first, std::int64_t stride, std::int64_t count) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t i = 0; i < count; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

/// Bytes up from all NICs, and into them, per byte of the collective.
struct DrawnNetwork {
  double up = 0.0, down = 0.0;
  double links = 0.0;
};

DrawnNetwork network_of(const Machine& m, const std::vector<LinkLoad>& loads) {
  DrawnNetwork sum;
  for (const LinkLoad& load : loads) {
    const topology::Link& link = m.cluster.links()[load.link];
    if (link.kind != LinkKind::injection) continue;
    const bool up = m.cluster.devices()[link.from].kind == topology::DeviceKind::nic;
    (up ? sum.up : sum.down) += load.bytes_per_byte;
    sum.links += 1;
  }
  return sum;
}

/// Bytes out of all GPUs by NVLink.
double out_of_gpus(const Machine& m, const std::vector<LinkLoad>& loads) {
  double sum = 0.0;
  for (const LinkLoad& load : loads) {
    const topology::Link& link = m.cluster.links()[load.link];
    if (link.kind == LinkKind::nvlink &&
        m.cluster.devices()[link.from].kind == topology::DeviceKind::gpu)
      sum += load.bytes_per_byte;
  }
  return sum;
}

double rounding(const std::vector<LinkLoad>& loads) {
  return unit * static_cast<double>(loads.size());
}

}  // namespace

TEST_CASE("a ring puts its bytes on N network edges, whatever the machine") {
  for (const NcclGeneration architecture :
       {NcclGeneration::volta, NcclGeneration::ampere, NcclGeneration::hopper})
    for (const std::int64_t nodes : {2, 3, 8, 16}) {
      const Machine m(architecture, 16);
      for (const auto& group :
           {strided(0, 1, 8 * nodes), strided(1, 8, nodes), strided(0, 2, 4 * nodes)}) {
        const auto n = static_cast<double>(group.size());
        const auto whole = static_cast<double>(nodes);
        for (const auto& [kind, edge, edges] : {std::tuple{AG, (n - 1) / n, whole},
                                                {RS, (n - 1) / n, whole},
                                                {AR, 2 * (n - 1) / n, whole}}) {
          const auto loads = m.loads.of({kind, Algorithm::ring}, group);
          const DrawnNetwork sum = network_of(m, loads);
          INFO(static_cast<int>(architecture) << ", " << group.size() << " ranks");
          CHECK(sum.up == Approx(edge * edges).margin(sum.links * unit));
          CHECK(sum.down == Approx(edge * edges).margin(sum.links * unit));
        }
      }
    }
}

TEST_CASE("a ring in a node puts (n-1)/n on each of n edges") {
  const Machine a(NcclGeneration::ampere, 1), v(NcclGeneration::volta, 1);
  for (const Machine* m : {&a, &v}) {
    const auto loads = m->loads.of({AG, Algorithm::ring}, strided(0, 1, 8));
    CHECK(out_of_gpus(*m, loads) == Approx(7.0).margin(rounding(loads)));
  }
}

TEST_CASE("nothing enters the root of a Broadcast, nothing leaves that of a Reduce") {
  const Machine m(NcclGeneration::hopper, 4);
  const auto ranks = strided(0, 1, 32);
  const auto whole = m.loads.of({CollectiveKind::broadcast, Algorithm::ring}, ranks);
  // 32 edges less one; of the channels some enter the root's node at the root, by the network.
  const DrawnNetwork sum = network_of(m, whole);
  const NodeChannels channels =
      search_channels(dgx(NcclGeneration::hopper), strided(0, 1, 8), true);
  double at_root = 0.0;
  for (const NodeChannel& ring : channels.rings) at_root += ring.gpus.front() == 0 ? 1.0 : 0.0;
  CHECK(sum.up ==
        Approx(4.0 - at_root / static_cast<double>(channels.rings.size())).margin(32 * unit));
  double into_root = 0.0, out_of_root = 0.0;
  for (const LinkLoad& load : whole)
    for (const topology::LinkId in : m.cluster.nvlink_in(0))
      into_root += load.link == in ? load.bytes_per_byte : 0.0;
  for (const LinkLoad& load : m.loads.of({CollectiveKind::reduce, Algorithm::ring}, ranks))
    for (const topology::LinkId out : m.cluster.nvlink_out(0))
      out_of_root += load.link == out ? load.bytes_per_byte : 0.0;
  CHECK(into_root == 0.0);
  CHECK(out_of_root == 0.0);
}

TEST_CASE("in a double tree every node but the roots sends S up and takes S in from above") {
  for (const std::int64_t nodes : {2, 3, 7, 16}) {
    const Machine m(NcclGeneration::ampere, 16);
    const auto group = strided(0, 1, 8 * nodes);
    const auto loads = m.loads.of({AR, Algorithm::tree}, group);
    const DrawnNetwork sum = network_of(m, loads);
    // N - 1 edges in each tree, half of the bytes up and half down.
    const double edges = 2.0 * static_cast<double>(nodes - 1);
    CHECK(sum.up == Approx(edges).margin(sum.links * unit));
    CHECK(sum.down == Approx(edges).margin(sum.links * unit));
    // Chains: p - 1 hops up and as many down in every node.
    CHECK(out_of_gpus(m, loads) ==
          Approx(14.0 * static_cast<double>(nodes)).margin(rounding(loads)));
  }
}

TEST_CASE("NVLSTree sends a tree's bytes over the network and reads a node's in the switch") {
  const Machine m(NcclGeneration::hopper, 16);
  const auto loads = m.loads.of({AR, Algorithm::nvls_tree}, strided(0, 1, 128));
  const DrawnNetwork sum = network_of(m, loads);
  CHECK(sum.up == Approx(30.0).margin(sum.links * unit));
  CHECK(out_of_gpus(m, loads) == Approx(128 * (1 + 1.0 / 8)).margin(rounding(loads)));
  // Inner nodes of one tree are leaves of the other: no NIC has more than two of the eighths.
  for (const LinkLoad& load : loads)
    if (m.cluster.links()[load.link].kind == LinkKind::injection)
      CHECK(load.bytes_per_byte <= 2.0 / 8 + unit);
}

TEST_CASE("switches that sum take every node's bytes once") {
  const Machine m(NcclGeneration::hopper, 16);
  for (const Algorithm algorithm :
       {Algorithm::collnet_direct, Algorithm::collnet_chain, Algorithm::nvls}) {
    const auto loads = m.loads.of({AR, algorithm}, strided(0, 1, 128));
    const DrawnNetwork sum = network_of(m, loads);
    CHECK(sum.up == Approx(16.0).margin(sum.links * unit));
    CHECK(sum.down == Approx(16.0).margin(sum.links * unit));
    // One link between leaf and spine carries the sum of a unit of eight nodes.
    double above = 0.0;
    for (const LinkLoad& load : loads)
      if (m.cluster.links()[load.link].kind == LinkKind::fabric) above += load.bytes_per_byte;
    CHECK(above == Approx(4.0).margin(64 * unit));  // from one unit to the root's, and back
  }
  const auto gather = m.loads.of({AG, Algorithm::collnet_direct}, strided(0, 1, 128));
  CHECK(network_of(m, gather).up == Approx(1.0).margin(128 * unit));
  CHECK(network_of(m, gather).down == Approx(16.0).margin(128 * unit));
}

TEST_CASE("PAT moves (n-1)/n of the buffer out of every rank and into it") {
  const Machine m(NcclGeneration::hopper, 16);
  for (const std::int64_t n : {2, 5, 8, 13, 16})
    for (const auto kind : {AG, RS}) {
      const auto loads = m.loads.of({kind, Algorithm::pat}, strided(2, 8, n));
      for (std::int64_t node = 0; node < n; ++node)
        for (const auto link : {m.cluster.nic_up(node, 2), m.cluster.nic_down(node, 2)}) {
          double sum = 0.0;
          for (const LinkLoad& load : loads) sum += load.link == link ? load.bytes_per_byte : 0.0;
          CHECK(sum == Approx(static_cast<double>(n - 1) / static_cast<double>(n)).margin(unit));
        }
    }
}

TEST_CASE("AlltoAll moves each pair's n-th once, and stays on rails by PXN") {
  const Machine m(NcclGeneration::hopper, 4);
  const auto loads = m.loads.of({CollectiveKind::all_to_all, Algorithm::p2p}, strided(0, 1, 32));
  const DrawnNetwork sum = network_of(m, loads);
  CHECK(sum.up == Approx(32 * 24.0 / 32).margin(sum.links * unit));
  // In the node 7 of 32 parts; 3 nodes' other 7 rails by way of their speakers.
  CHECK(out_of_gpus(m, loads) == Approx(32 * (7.0 + 3 * 7) / 32).margin(rounding(loads)));
  for (const LinkLoad& load : loads)
    CHECK(m.cluster.links()[load.link].kind != LinkKind::fabric);  // one unit: no spine needed
}

TEST_CASE("AlltoAll counted leaf by leaf is the sum of all pairs") {
  for (const auto routing : {topology::Routing::destination, topology::Routing::spray}) {
    const Machine m(NcclGeneration::hopper, 16, routing);  // two leaves for each rail
    std::map<topology::LinkId, double> expected;
    std::vector<topology::LinkShare> shares;
    for (std::int64_t from = 0; from < 16; ++from)
      for (std::int64_t to = 0; to < 16; ++to)
        for (std::int64_t rail = 0; rail < 8 && from != to; ++rail) {
          shares.clear();
          m.router.append_shares(m.cluster.nic(from, rail), m.cluster.nic(to, rail), 0, shares);
          for (const topology::LinkShare& s : shares) expected[s.link] += s.share * 8 / 128;
        }
    std::size_t found = 0;
    for (const LinkLoad& load :
         m.loads.of({CollectiveKind::all_to_all, Algorithm::p2p}, strided(0, 1, 128))) {
      const LinkKind kind = m.cluster.links()[load.link].kind;
      if (kind != LinkKind::injection && kind != LinkKind::fabric) continue;
      CHECK(load.bytes_per_byte == Approx(expected.at(load.link)).margin(unit));
      ++found;
    }
    CHECK(found == expected.size());
  }
}

TEST_CASE("relabelling nodes changes no sum, nor does the order of ranks") {
  const Machine m(NcclGeneration::hopper, 16);
  std::vector<std::int64_t> low, high;
  for (const std::int64_t node : {0, 1, 2, 3})
    for (std::int64_t g = 0; g < 8; ++g) low.push_back(8 * node + g);
  for (const std::int64_t node : {4, 5, 6, 7})
    for (std::int64_t g = 0; g < 8; ++g) high.push_back(8 * node + g);
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::nvls_tree}) {
    auto loads = m.loads.of({AR, algorithm}, low);
    const auto other = m.loads.of({AR, algorithm}, high);
    REQUIRE(loads.size() == other.size());
    for (std::size_t i = 0; i < loads.size(); ++i)
      CHECK(loads[i].bytes_per_byte == other[i].bytes_per_byte);
    std::reverse(low.begin(), low.end());
    CHECK(m.loads.of({AR, algorithm}, low) == loads);
  }
}

TEST_CASE("hashing and spraying move the same bytes over the same NICs") {
  const Machine fixed(NcclGeneration::hopper, 16),
      hashed(NcclGeneration::hopper, 16, topology::Routing::ecmp),
      sprayed(NcclGeneration::hopper, 16, topology::Routing::spray);
  const auto ranks = strided(0, 1, 128);
  const double up = network_of(fixed, fixed.loads.of({AG, Algorithm::ring}, ranks)).up;
  for (const Machine* m : {&hashed, &sprayed}) {
    const auto loads = m->loads.of({AG, Algorithm::ring}, ranks);
    CHECK(network_of(*m, loads).up == Approx(up));
  }
}
