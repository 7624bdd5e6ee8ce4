#include "sim/network/links/loads.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>

#include "sim/network/nccl/network.hpp"
#include "tests/session.hpp"
#include "tests/sim/collective_rows.hpp"
#include "topology/cluster.hpp"
#include "topology/router.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::LinkId;
using topology::LinkKind;
using topology::NcclGeneration;
using workloads::CollectiveKind;

namespace {

constexpr auto AR = CollectiveKind::all_reduce;
constexpr auto AG = CollectiveKind::all_gather;
constexpr auto SR = CollectiveKind::send_receive;

topology::FabricSpec fabric(topology::FabricKind kind = topology::FabricKind::rail_optimized) {
  return {.name = "test",
          .kind = kind,
          .ports = 64,
          .tiers = 0,
          .oversubscription = 1.0,
          .link = {},
          .switch_latency = 150_ns,
          .cable_latency = 25_ns};
}

struct Machine {
  explicit Machine(NcclGeneration architecture, std::int64_t nodes,
                   topology::FabricKind kind = topology::FabricKind::rail_optimized)
      : cluster(topology::Cluster::build(dgx(architecture), nodes, fabric(kind))),
        router(cluster),
        loads(cluster, router) {}
  topology::Cluster cluster;
  topology::StaticRouter router;
  LinkLoads loads;
};

std::vector<std::int64_t> strided(std::int64_t first, std::int64_t stride, std::int64_t count) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t i = 0; i < count; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

double total(const Machine& m, const std::vector<LinkLoad>& loads, LinkKind kind) {
  double sum = 0.0;
  for (const LinkLoad& load : loads)
    if (m.cluster.links()[load.link].kind == kind) sum += load.bytes_per_byte;
  return sum;
}

std::map<LinkId, double> by_link(const std::vector<LinkLoad>& loads) {
  std::map<LinkId, double> map;
  for (const LinkLoad& load : loads) {
    CHECK(map.count(load.link) == 0);  // each link once
    map[load.link] = load.bytes_per_byte;
  }
  return map;
}

// Weights are rounded up to 1/1024 of a byte per byte, each by less than that.
constexpr double unit = 1.0 / 1024;

}  // namespace

TEST_CASE("a group knows its nodes, ranks per node and stride") {
  const Machine m(NcclGeneration::hopper, 16);
  CHECK(shape_of(m.cluster, strided(0, 1, 8)) == GroupShape{8, 1, 8, 1});
  CHECK(shape_of(m.cluster, strided(0, 1, 128)) == GroupShape{128, 16, 8, 1});
  CHECK(shape_of(m.cluster, strided(3, 4, 32)) == GroupShape{32, 16, 2, 1});
  CHECK(shape_of(m.cluster, strided(0, 16, 8)) == GroupShape{8, 8, 1, 2});
  CHECK(shape_of(m.cluster, {127, 0}) == GroupShape{2, 2, 1, 15});
}

TEST_CASE("inside one node AllGather sends 7/8 of the buffer through every GPU's NVLink port") {
  const Machine m(NcclGeneration::hopper, 2);
  const auto loads = by_link(m.loads.of({AG, Algorithm::ring}, strided(8, 1, 8)));
  for (std::int64_t g = 8; g < 16; ++g) {
    double out = 0.0, in = 0.0;
    for (const LinkId link : m.cluster.nvlink_out(g)) out += loads.at(link);
    for (const LinkId link : m.cluster.nvlink_in(g)) in += loads.at(link);
    CHECK(out == Approx(7.0 / 8).margin(4 * unit));
    CHECK(in == Approx(7.0 / 8).margin(4 * unit));
  }
  CHECK(loads.size() == 8 * 2 * 4);  // nothing else: 8 GPUs, out and in, 4 NVSwitches
}

TEST_CASE("a port's links share by their width") {
  const Machine m(NcclGeneration::hopper, 1);
  const auto loads = by_link(m.loads.of({AG, Algorithm::ring}, strided(0, 1, 8)));
  const auto out = m.cluster.nvlink_out(0);  // 5, 4, 4, 5 NVLinks
  CHECK(loads.at(out[0]) == Approx(7.0 / 8 * 5 / 18).margin(unit));
  CHECK(loads.at(out[1]) == Approx(7.0 / 8 * 4 / 18).margin(unit));
}

TEST_CASE("NVLink SHARP reads a buffer once and multicasts its share of the sum") {
  const Machine h(NcclGeneration::hopper, 1), a(NcclGeneration::ampere, 1);
  const auto out = [](const Machine& m, Algorithm algorithm) {
    return total(m, m.loads.of({AR, algorithm}, strided(0, 1, 8)), LinkKind::nvlink) / 16;
  };
  CHECK(out(h, Algorithm::nvls) == Approx(1 + 1.0 / 8).margin(4 * unit));
  CHECK(out(a, Algorithm::ring) == Approx(2 * 7.0 / 8).margin(6 * unit));  // a ring: 2 (n-1)/n
}

TEST_CASE("the bytes between nodes are the ring's, spread over the rails") {
  const Machine m(NcclGeneration::hopper, 16);
  const auto group = strided(0, 1, 128);
  for (const auto& [kind, ring] : {std::pair{AG, 127.0 / 128}, std::pair{AR, 2 * 127.0 / 128}}) {
    const auto loads = by_link(m.loads.of({kind, Algorithm::ring}, group));
    for (std::int64_t node = 0; node < 16; ++node) {
      double up = 0.0, down = 0.0;
      for (std::int64_t nic = 0; nic < 8; ++nic) {
        CHECK(loads.at(m.cluster.nic_up(node, nic)) == Approx(ring / 8).margin(unit));
        up += loads.at(m.cluster.nic_up(node, nic));
        down += loads.at(m.cluster.nic_down(node, nic));
      }
      CHECK(up == Approx(ring).margin(8 * unit));
      CHECK(down == Approx(ring).margin(8 * unit));
    }
  }
}

TEST_CASE("a strided group uses its members' own rails and no NVLink") {
  const Machine m(NcclGeneration::hopper, 16);
  const auto loads = m.loads.of({AG, Algorithm::ring}, strided(3, 8, 16));
  CHECK(total(m, loads, LinkKind::nvlink) == 0.0);
  const auto map = by_link(loads);
  CHECK(map.at(m.cluster.nic_up(0, 3)) == Approx(15.0 / 16).margin(unit));
  CHECK(map.count(m.cluster.nic_up(0, 2)) == 0);
  // Two members a node: half of the ring on each of their rails; inside it goes to the other member
  // and, by PXN, back to the one beside the NIC that it came in by.
  const auto pairs = m.loads.of({AG, Algorithm::ring}, strided(0, 4, 32));
  CHECK(by_link(pairs).at(m.cluster.nic_up(5, 4)) == Approx(31.0 / 64).margin(unit));
  CHECK(total(m, pairs, LinkKind::nvlink) / 32 / 2 == Approx(31.0 / 32).margin(4 * unit));
}

TEST_CASE("DGX-1 puts eight GPUs on four NICs") {
  const Machine m(NcclGeneration::volta, 4);
  const auto loads = by_link(m.loads.of({AG, Algorithm::ring}, strided(0, 1, 32)));
  for (std::int64_t nic = 0; nic < 4; ++nic)
    CHECK(loads.at(m.cluster.nic_up(2, nic)) == Approx(31.0 / 32 / 4).margin(unit));
}

TEST_CASE("rings of a cube mesh use every link between members evenly") {
  const Machine m(NcclGeneration::volta, 1);
  const auto loads = by_link(m.loads.of({AG, Algorithm::ring}, strided(0, 1, 8)));
  for (const auto& [link, weight] : loads)
    CHECK(weight ==
          Approx(7.0 / 8 / 6 * static_cast<double>(m.cluster.links()[link].count)).margin(unit));
  // A quad: links to the other quad stay idle.
  for (const LinkLoad& load : m.loads.of({AG, Algorithm::ring}, strided(0, 1, 4)))
    CHECK(m.cluster.devices()[m.cluster.links()[load.link].to].index < 4);
}

TEST_CASE("links above the leaves are loaded where the ring crosses leaves") {
  // 32 nodes share a leaf of 64 ports; 64 nodes are two units.
  const Machine small(NcclGeneration::hopper, 32), large(NcclGeneration::hopper, 64);
  CHECK(total(small, small.loads.of({AG, Algorithm::ring}, strided(0, 1, 256)), LinkKind::fabric) ==
        0.0);
  // Two crossings of the whole ring, each up and down.
  CHECK(total(large, large.loads.of({AG, Algorithm::ring}, strided(0, 1, 512)), LinkKind::fabric) ==
        Approx(2 * 2 * 511.0 / 512).margin(64 * unit));
}

TEST_CASE("a message takes all NVLinks of both ends, or the path between NICs") {
  const Machine m(NcclGeneration::hopper, 2);
  const auto inside = m.loads.of({SR, Algorithm::p2p}, {1, 6});
  CHECK(inside.size() == 8);
  CHECK(total(m, inside, LinkKind::nvlink) == Approx(2.0).margin(8 * unit));
  const auto across = by_link(m.loads.of({SR, Algorithm::p2p}, {1, 9}));
  CHECK(across.at(m.cluster.nic_up(0, 1)) == 1.0);
  CHECK(across.at(m.cluster.nic_down(1, 1)) == 1.0);
  CHECK(across.count(m.cluster.nic_up(1, 1)) == 0);
  CHECK_FALSE(m.loads.of({SR, Algorithm::p2p}, {9, 1}) == m.loads.of({SR, Algorithm::p2p}, {1, 9}));
}

TEST_CASE("all weights are multiples of 1/1024 and the order of ranks changes nothing") {
  const Machine m(NcclGeneration::hopper, 40, topology::FabricKind::fat_tree);
  auto group = strided(0, 1, 320);
  const auto loads = m.loads.of({AR, Algorithm::ring}, group);
  for (const LinkLoad& load : loads) {
    CHECK(load.bytes_per_byte * 1024 == std::round(load.bytes_per_byte * 1024));
    CHECK(load.bytes_per_byte > 0);
  }
  std::reverse(group.begin(), group.end());
  CHECK(m.loads.of({AR, Algorithm::ring}, group) == loads);
}

TEST_CASE("no collective asks a link for more than it carries while it runs alone") {
  for (const auto architecture :
       {NcclGeneration::volta, NcclGeneration::ampere, NcclGeneration::hopper}) {
    const Machine m(architecture, 16);
    const NcclNetwork network(m.cluster, m.router, catalogue().nccl("2.20"));
    for (const auto& group : {strided(0, 1, 2), strided(0, 1, 4), strided(0, 1, 8),
                              strided(0, 1, 16), strided(0, 1, 32), strided(0, 1, 128),
                              strided(0, 8, 16), strided(0, 4, 32), strided(0, 2, 64)})
      for (const auto kind : {AR, AG, CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                              CollectiveKind::reduce, CollectiveKind::all_to_all, SR})
        for (const Bytes bytes : {1_MiB, 64_MiB, 4_GiB}) {
          if ((kind == SR) != (group.size() == 2)) continue;
          const CollectiveTime t =
              network.time_of(plain_collective(kind, bytes), shape_of(m.cluster, group));
          const double rate = static_cast<double>(bytes.value) / seconds(t.transfer);
          for (const LinkLoad& load : network.loads_of({kind, t.algorithm}, group)) {
            const topology::Link& link = m.cluster.links()[load.link];
            INFO(m.cluster.name_of(link.from)
                 << " to " << m.cluster.name_of(link.to) << ", " << group.size() << " ranks, kind "
                 << static_cast<int>(kind) << ", " << bytes.value);
            CHECK(rate * (load.bytes_per_byte - unit) <= link.bandwidth.value * 1.001);
          }
        }
  }
}

TEST_CASE("2,048 members are laid, thousands of small groups as well") {
  const Machine m(NcclGeneration::hopper, 256);
  CHECK(m.loads.of({AG, Algorithm::ring}, strided(0, 1, 2048)).size() > 2048);
  std::size_t links = 0;
  for (std::int64_t g = 0; g < 512; ++g)
    links += m.loads.of({AG, Algorithm::ring}, strided(4 * g, 1, 4)).size();
  for (std::int64_t p = 0; p < 3072; ++p)
    links += m.loads.of({SR, Algorithm::p2p}, {p % 1536, p % 1536 + 512}).size();
  for (std::int64_t d = 0; d < 16; ++d)
    links += m.loads.of({AG, Algorithm::ring}, strided(d, 16, 128)).size();
  CHECK(links > 10000);
}
