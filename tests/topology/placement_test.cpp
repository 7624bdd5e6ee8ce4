// Rail-only fabrics, and jobs that share a fabric: where their nodes lie, what is left of links.
#include <numeric>
#include <set>

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/topology/machines.hpp"
#include "topology/cluster_parts.hpp"
#include "topology/graph_checks.hpp"
#include "topology/router.hpp"

namespace stepcast::topology {
namespace {

using std::int64_t;

FabricSpec rail_only(int64_t ports = 64) {
  FabricSpec fabric = rail_optimized();
  fabric.kind = FabricKind::rail_only;
  fabric.ports = ports;
  return fabric;
}

FabricSpec placed(FabricSpec fabric, Placement placement, int64_t fabric_nodes = 0,
                  int64_t seed = 1) {
  fabric.job = {.placement = placement, .seed = seed, .fabric_nodes = fabric_nodes};
  return fabric;
}

int64_t switches(const Cluster& cluster) {
  int64_t sum = 0;
  for (const Device& device : cluster.devices()) sum += device.node < 0 ? 1 : 0;
  return sum;
}

std::string why_not(const NodeSpec& node, int64_t nodes, const FabricSpec& fabric) {
  try {
    Cluster::build(node, nodes, fabric, "a.toml:1");
  } catch (const InputError& error) {
    return error.what();
  }
  return "built";
}

/// Every link of a path begins where the one before it ends.
void check_way(const Cluster& cluster, const Path& path, DeviceId from, DeviceId to) {
  DeviceId here = from;
  for (const LinkId link : path) {
    REQUIRE(cluster.links()[link].from == here);
    here = cluster.links()[link].to;
  }
  REQUIRE(here == to);
}

}  // namespace

TEST_CASE("rail-only has a leaf for each rail and no spine up to as many nodes as ports") {
  for (const int64_t nodes : {2, 8, 64}) {
    const auto cluster = Cluster::build(dgx_h100(), nodes, rail_only());
    CHECK(cluster.num_tiers() == 1);
    CHECK(switches(cluster) == 8);
  }
  // Beyond, each rail is a fat tree of 64-port switches over `nodes` ports: 2 p / 64 leaves' worth.
  const auto two = Cluster::build(dgx_h100(), 256, rail_only());
  CHECK(two.num_tiers() == 2);
  CHECK(two.count(DeviceKind::leaf) == 8 * 8);
  CHECK(two.count(DeviceKind::spine) == 8 * 4);
  // 2,048 nodes: 2,048 ports a rail fit under two tiers (64^2 / 2), where joined rails need three.
  const auto large = Cluster::build(dgx_h100(), 2048, rail_only());
  CHECK(large.num_tiers() == 2);
  CHECK(switches(large) == 8 * (64 + 32));
  CHECK(Cluster::build(dgx_h100(), 2048, rail_optimized()).num_tiers() == 3);
}

TEST_CASE("what another rail gets leaves by the NIC of that rail, over NVLink to its GPU") {
  for (const Routing routing : {Routing::destination, Routing::ecmp, Routing::spray})
    for (const int64_t ports : {4, 16, 64}) {
      FabricSpec fabric = rail_only(ports);
      fabric.routing = routing;
      const auto cluster = Cluster::build(dgx_h100(), 5, fabric);
      const StaticRouter router(cluster);
      for (const int64_t to : {9, 13, 39})
        for (const int64_t from : {0, 1, 5}) {
          const Path path = router.path(cluster.gpu(from), cluster.gpu(to), 3);
          check_way(cluster, path, cluster.gpu(from), cluster.gpu(to));
          const LinkId out = cluster.nic_up(0, to % 8), in = cluster.nic_down(to / 8, to % 8);
          CHECK(std::count(path.begin(), path.end(), out) == 1);
          CHECK(std::count(path.begin(), path.end(), in) == 1);
          const bool nvlink = std::any_of(path.begin(), path.end(), [&](LinkId link) {
            return cluster.links()[link].kind == LinkKind::nvlink;
          });
          CHECK(nvlink == (from % 8 != to % 8));
        }
    }
}

TEST_CASE("NICs of two rails are not joined, and every device still reaches every other") {
  const auto cluster = Cluster::build(dgx_h100(), 3, rail_only());
  CHECK(cluster.joined(2, 2));
  CHECK_FALSE(cluster.joined(2, 3));
  CHECK(cluster.switches_between(0, 2, 1, 2) == 1);
  CHECK(cluster.switches_between(0, 2, 1, 3) == 1);  // from NIC 3 of node 0
  CHECK(strongly_connected(cluster));
  const auto hops = hops_from(cluster, cluster.nic(0, 2), {LinkKind::injection, LinkKind::fabric});
  CHECK(hops[cluster.nic(1, 2)].has_value());
  CHECK_FALSE(hops[cluster.nic(1, 3)].has_value());
  const Path path = StaticRouter(cluster).path(cluster.nic(0, 2), cluster.nic(1, 3), 0);
  check_way(cluster, path, cluster.nic(0, 2), cluster.nic(1, 3));
}

TEST_CASE("law: rail-only keeps the bisection of rails that are joined") {
  for (const int64_t nodes : {8, 64, 96, 256})
    CHECK(Cluster::build(dgx_h100(), nodes, rail_only()).bisection() ==
          Cluster::build(dgx_h100(), nodes, rail_optimized()).bisection());
}

TEST_CASE("rail-only without NVSwitches, and jobs that cannot be, are refused") {
  CHECK_THAT(why_not(dgx_1v(), 2, rail_only()), Catch::Contains("rail_only needs NVSwitches"));
  CHECK_THAT(why_not(dgx_h100(), 8, placed(rail_optimized(), Placement::packed, 4)),
             Catch::Contains("fabric_nodes are fewer"));
  FabricSpec full = rail_optimized();
  full.job.other_jobs = 1;
  CHECK_THAT(why_not(dgx_h100(), 8, full), Catch::Contains("other_jobs must be"));
}

TEST_CASE("random places are drawn without return, alike for a seed, others for another") {
  const auto places = [](int64_t seed, int64_t of) {
    return lay_out_fabric(placed(rail_optimized(), Placement::random, of, seed), dgx_h100(), 64,
                          "test")
        .places;
  };
  const auto one = places(1, 256);
  REQUIRE(one.size() == 64);
  CHECK(std::set<int64_t>(one.begin(), one.end()).size() == 64);
  CHECK(*std::max_element(one.begin(), one.end()) < 256);
  CHECK(one == places(1, 256));
  CHECK(one != places(2, 256));
  auto all = places(5, 0);  // a fabric of its own: the same places in another order
  std::sort(all.begin(), all.end());
  std::vector<int64_t> counted(64);
  std::iota(counted.begin(), counted.end(), 0);
  CHECK(all == counted);
}

TEST_CASE("a random job's nodes lie under as many leaves as chance has it") {
  // 32 of 256 nodes under 8 leaves of 32: on average 8 (1 - C(224,32)/C(256,32)) = 7.9 leaves.
  int64_t leaves = 0;
  for (int64_t seed = 1; seed <= 20; ++seed) {
    const auto layout = lay_out_fabric(placed(rail_optimized(), Placement::random, 256, seed),
                                       dgx_h100(), 32, "test");
    std::set<int64_t> met;
    for (int64_t n = 0; n < 32; ++n) met.insert(layout.leaf_of(n, 0));
    leaves += static_cast<int64_t>(met.size());
  }
  CHECK(static_cast<double>(leaves) / 20 > 7.5);
  const auto packed =
      lay_out_fabric(placed(rail_optimized(), Placement::packed, 256), dgx_h100(), 32, "test");
  CHECK(packed.leaf_of(31, 0) == packed.leaf_of(0, 0));
}

TEST_CASE("other jobs take their share of links between switches and of nothing else") {
  FabricSpec fabric = rail_optimized();
  const auto alone = Cluster::build(dgx_h100(), 64, fabric);
  fabric.job.other_jobs = 0.25;
  const auto shared = Cluster::build(dgx_h100(), 64, fabric);
  REQUIRE(alone.links().size() == shared.links().size());
  for (std::size_t i = 0; i < alone.links().size(); ++i) {
    const double left = alone.links()[i].kind == LinkKind::fabric ? 0.75 : 1.0;
    REQUIRE(shared.links()[i].bandwidth.value == alone.links()[i].bandwidth.value * left);
  }
}

TEST_CASE("routes of random jobs are as short as breadth-first search finds") {
  FabricSpec fabric = placed(rail_optimized(), Placement::random, 40, 7);
  fabric.ports = 16;
  const auto cluster = Cluster::build(dgx_a100(), 9, fabric);
  const StaticRouter router(cluster);
  for (int64_t a = 0; a < 72; a += 5) {
    const DeviceId from = cluster.nic(a / 8, a % 8);
    const auto hops = hops_from(cluster, from, {LinkKind::injection, LinkKind::fabric});
    for (int64_t b = 0; b < 72; ++b) {
      if (a / 8 == b / 8) continue;
      const DeviceId to = cluster.nic(b / 8, b % 8);
      const Path path = router.path(from, to, 0);
      check_way(cluster, path, from, to);
      REQUIRE(static_cast<int64_t>(path.size()) == *hops[to]);
    }
  }
}

}  // namespace stepcast::topology
