// What the fabric's routing promises: which of the equal ways a flow takes, under each choice.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "tests/topology/machines.hpp"
#include "topology/fabric_routes.hpp"
#include "topology/router.hpp"

namespace stepcast::topology {
namespace {

using std::int64_t;
using Shares = std::vector<LinkShare>;

FabricSpec routed(FabricSpec fabric, Routing routing, int64_t seed = 1) {
  fabric.routing = routing;
  fabric.ecmp_seed = seed;
  return fabric;
}

Shares shares_of(const StaticRouter& router, DeviceId from, DeviceId to, std::uint64_t key = 0) {
  Shares shares;
  router.append_shares(from, to, key, shares);
  return shares;
}

/// Bytes that leave a device are those that came: one unit from `from` to `to`.
void check_conserved(const Cluster& cluster, DeviceId from, DeviceId to, const Shares& shares) {
  std::map<DeviceId, double> surplus;
  for (const LinkShare& s : shares) {
    REQUIRE(s.share > 0.0);
    REQUIRE(s.share <= 1.0);
    surplus[cluster.links()[s.link].from] += s.share;
    surplus[cluster.links()[s.link].to] -= s.share;
  }
  for (const auto& [device, sum] : surplus) {
    const double expected = device == from ? 1.0 : device == to ? -1.0 : 0.0;
    REQUIRE(sum == Approx(expected).margin(1e-12));
  }
}

/// Small fabrics of every depth, so that leaves, spines and cores all have several ways.
std::vector<Cluster> small_clusters(Routing routing) {
  std::vector<Cluster> clusters;
  NodeSpec node = dgx_a100();
  for (FabricSpec fabric : {rail_optimized(), fat_tree()})
    for (const int64_t nodes : {2, 9, 16}) {
      fabric.ports = 16;
      clusters.push_back(Cluster::build(node, nodes, routed(fabric, routing)));
    }
  node.nics = 2;
  for (FabricSpec fabric : {rail_optimized(), fat_tree()})
    for (const int64_t tiers : {3, 4}) {
      fabric.ports = 8;
      fabric.tiers = tiers;
      clusters.push_back(Cluster::build(node, 13, routed(fabric, routing)));
    }
  return clusters;
}

/// Flows on the uplinks of the leaf of rail 0 and unit 0 when each of its NICs sends to the same
/// place in the next unit; `key` makes the flows other ones.
std::map<LinkId, int64_t> leaf_uplinks(const Cluster& cluster, std::uint64_t key) {
  const StaticRouter router(cluster);
  std::map<LinkId, int64_t> flows;
  for (int64_t n = 0; n < cluster.nodes_per_unit(); ++n) {
    const Path path =
        router.path(cluster.nic(n, 0), cluster.nic(n + cluster.nodes_per_unit(), 0), key);
    ++flows[path.at(1)];  // injection, then up
  }
  return flows;
}

/// P(no bin has more than k of n balls) = n! / m^n [x^n] (sum of x^i / i!, i = 0 ... k)^m.
double no_bin_above(int64_t k, int64_t balls, int64_t bins) {
  const auto n = static_cast<std::size_t>(balls);
  std::vector<double> power(n + 1, 0.0);  // coefficient i times i! / bins^i stays near 1
  power[0] = 1.0;
  for (int64_t bin = 0; bin < bins; ++bin) {
    std::vector<double> next(n + 1, 0.0);
    for (std::size_t have = 0; have <= n; ++have) {
      double factor = 1.0;  // 1 / i!
      for (std::size_t i = 0; i <= static_cast<std::size_t>(k) && have + i <= n; ++i) {
        if (i > 0) factor /= static_cast<double>(i);
        next[have + i] += power[have] * factor;
      }
    }
    power = next;
  }
  double p = power[n];
  for (int64_t i = 1; i <= balls; ++i) p *= static_cast<double>(i) / static_cast<double>(bins);
  return p;
}

TEST_CASE("every routing goes from end to end over as few links") {
  for (const Routing routing : {Routing::destination, Routing::ecmp, Routing::spray})
    for (const Cluster& cluster : small_clusters(routing)) {
      const StaticRouter router(cluster);
      std::mt19937_64 random(11);
      for (int i = 0; i < 300; ++i) {
        const auto any = [&] {
          return static_cast<int64_t>(random() % static_cast<std::uint64_t>(cluster.num_gpus()));
        };
        const DeviceId from = cluster.gpu(any()), to = cluster.gpu(any());
        const std::uint64_t key = random() % 4;
        const Path path = router.path(from, to, key);
        DeviceId here = from;
        for (const LinkId link : path) {
          REQUIRE(cluster.links()[link].from == here);
          here = cluster.links()[link].to;
        }
        REQUIRE(here == to);
        const Shares shares = shares_of(router, from, to, key);
        check_conserved(cluster, from, to, shares);
        double hops = 0.0;
        for (const LinkShare& s : shares) hops += s.share;
        REQUIRE(hops == Approx(static_cast<double>(path.size())));
        if (routing != Routing::spray) REQUIRE(shares.size() == path.size());
      }
    }
}

TEST_CASE("by destination the queue pairs of one pair of NICs share their way through the fabric") {
  const auto cluster = Cluster::build(dgx_h100(), 64, fat_tree());
  const StaticRouter router(cluster);
  for (const std::uint64_t key : {1u, 2u, 31u, 1000u})
    REQUIRE(router.path(cluster.nic(0, 0), cluster.nic(40, 3), key) ==
            router.path(cluster.nic(0, 0), cluster.nic(40, 3), 0));
}

TEST_CASE("the hash sends a flow the same way under the same seed, another under another") {
  const auto way = [](int64_t seed, std::uint64_t key) {
    const auto cluster =
        Cluster::build(dgx_h100(), 64, routed(rail_optimized(), Routing::ecmp, seed));
    Path ways;
    for (int64_t n = 0; n < 32; ++n) {
      const Path path =
          StaticRouter(cluster).path(cluster.gpu(8 * n), cluster.gpu(8 * (n + 32)), key);
      ways.insert(ways.end(), path.begin(), path.end());
    }
    return ways;
  };
  REQUIRE(way(1, 0) == way(1, 0));
  REQUIRE(way(1, 0) != way(2, 0));
  REQUIRE(way(1, 0) != way(1, 1));
}

TEST_CASE("the hash leaves no way out and prefers none") {
  // 64,000 flows on 32 ways: 2,000 each, standard deviation 44. Chi-square of 31 degrees of
  // freedom is below 66 but once in 4,000.
  for (const std::uint64_t stage : {1u, 2u, 17u}) {
    std::vector<double> count(32, 0.0);
    for (std::uint64_t key = 0; key < 40; ++key)
      for (DeviceId from = 0; from < 40; ++from)
        for (DeviceId to = 0; to < 40; ++to)
          count[static_cast<std::size_t>(hashed_way(9, {from, to, key}, stage, 32))] += 1;
    double chi = 0.0;
    for (const double n : count) chi += (n - 2000) * (n - 2000) / 2000;
    REQUIRE(chi < 66);
  }
}

TEST_CASE("hashed flows fall on uplinks as balls into bins") {
  // 32 flows on 32 uplinks: the fullest holds 3.53 on average. 3,000 throws.
  const auto cluster = Cluster::build(dgx_h100(), 64, routed(rail_optimized(), Routing::ecmp));
  constexpr int64_t m = 32;
  REQUIRE(cluster.nodes_per_unit() == m);
  double mean = 0.0, square = 0.0;  // of the fullest
  for (int64_t k = 0; k < m; ++k) {
    const double p = no_bin_above(k, m, m);  // P(fullest <= k): E = sum of P(fullest > k)
    mean += 1 - p;
    square += static_cast<double>(2 * k + 1) * (1 - p);
  }
  REQUIRE(mean == Approx(3.53).margin(0.01));
  constexpr int throws = 3000;
  double fullest = 0.0, used = 0.0;
  for (std::uint64_t key = 0; key < throws; ++key) {
    int64_t most = 0;
    const auto flows = leaf_uplinks(cluster, key);
    for (const auto& [link, count] : flows) most = std::max(most, count);
    fullest += static_cast<double>(most) / throws;
    used += static_cast<double>(flows.size()) / throws;
  }
  REQUIRE(fullest == Approx(mean).margin(4 * std::sqrt((square - mean * mean) / throws)));
  REQUIRE(used == Approx(m * (1 - std::pow(1 - 1.0 / m, m))).margin(0.2));  // 20.4
}

TEST_CASE("by destination the same flows meet nowhere") {
  const auto cluster = Cluster::build(dgx_h100(), 64, rail_optimized());
  const auto flows = leaf_uplinks(cluster, 0);
  for (const auto& [link, count] : flows) REQUIRE(count <= cluster.links()[link].count);
}

TEST_CASE("cables that a hash chooses among are links of their own and add up to the bundle") {
  for (const int64_t nodes : {40, 64, 100, 300}) {
    const auto bundled = Cluster::build(dgx_h100(), nodes, rail_optimized());
    const auto hashed = Cluster::build(dgx_h100(), nodes, routed(rail_optimized(), Routing::ecmp));
    std::map<std::pair<DeviceId, DeviceId>, double> bandwidth;
    int64_t most = 0;
    for (const Link& link : bundled.links()) {
      bandwidth[{link.from, link.to}] += link.bandwidth.value;
      if (link.kind == LinkKind::fabric) most = std::max(most, link.count);
    }
    for (const Link& link : hashed.links()) {
      bandwidth[{link.from, link.to}] -= link.bandwidth.value;
      if (link.kind == LinkKind::fabric) REQUIRE(link.count == 1);
    }
    for (const auto& [ends, left] : bandwidth) REQUIRE(left == Approx(0.0).margin(1.0));
    REQUIRE(hashed.bisection() == bundled.bisection());
    if (nodes == 40) REQUIRE(most > 1);  // else this test would be about nothing
  }
}

TEST_CASE("both directions of a pair of spines use more than one of their cables") {
  // 40 nodes: two leaves a rail, several cables from leaf to spine. A hash on the way down as well.
  const auto cluster = Cluster::build(dgx_h100(), 40, routed(rail_optimized(), Routing::ecmp));
  const StaticRouter router(cluster);
  std::set<LinkId> up, down;
  for (std::uint64_t key = 0; key < 2000; ++key) {
    const Path path = router.path(cluster.nic(0, 0), cluster.nic(39, 0), key);
    up.insert(path.at(1));
    down.insert(path.at(2));
  }
  std::size_t uplinks = 0;
  const DeviceId leaf = cluster.links()[cluster.nic_up(0, 0)].to;
  for (const Link& link : cluster.links())
    uplinks += link.from == leaf && link.kind == LinkKind::fabric;
  REQUIRE(up.size() == uplinks);
  REQUIRE(down.size() == uplinks);
}

TEST_CASE("sprayed packets load every uplink of a leaf by its part") {
  const auto cluster = Cluster::build(dgx_h100(), 64, routed(rail_optimized(), Routing::spray));
  const StaticRouter router(cluster);
  const DeviceId leaf = cluster.links()[cluster.nic_up(0, 0)].to;
  double cables = 0.0;
  for (const Link& link : cluster.links())
    if (link.from == leaf && link.kind == LinkKind::fabric)
      cables += static_cast<double>(link.count);
  for (const LinkShare& s : shares_of(router, cluster.gpu(0), cluster.gpu(8 * 40)))
    if (const Link& link = cluster.links()[s.link]; link.kind == LinkKind::fabric)
      REQUIRE(s.share == Approx(static_cast<double>(link.count) / cables));
}

TEST_CASE("sprayed, any permutation of NICs runs at full speed on a non-blocking fabric") {
  // And at 1/k at worst where the leaves are oversubscribed k to 1.
  std::mt19937_64 random(5);
  for (FabricSpec fabric : {rail_optimized(), fat_tree()})
    for (const int64_t nodes : {16, 37, 128})
      for (const double k : {1.0, 2.0, 4.0}) {
        fabric.oversubscription = k;
        fabric.ports = 32;
        const auto cluster = Cluster::build(dgx_a100(), nodes, routed(fabric, Routing::spray));
        const StaticRouter router(cluster);
        std::vector<DeviceId> from;
        for (int64_t n = 0; n < nodes; ++n)
          for (int64_t nic = 0; nic < 8; ++nic) from.push_back(cluster.nic(n, nic));
        std::vector<DeviceId> to = from;
        std::shuffle(to.begin(), to.end(), random);
        std::vector<double> used(cluster.links().size(), 0.0);  // bytes/s, every NIC at line rate
        for (std::size_t i = 0; i < from.size(); ++i) {
          if (cluster.devices()[from[i]].node == cluster.devices()[to[i]].node) continue;
          for (const LinkShare& s : shares_of(router, from[i], to[i]))
            used[s.link] += s.share * cluster.node().nic.value;
        }
        for (LinkId link = 0; link < used.size(); ++link)
          if (cluster.links()[link].kind == LinkKind::fabric)
            REQUIRE(used[link] <= k * cluster.links()[link].bandwidth.value * (1 + 1e-9));
      }
}

TEST_CASE("another rail of another node is reached through the spine, the same rail below it") {
  for (const Routing routing : {Routing::destination, Routing::ecmp, Routing::spray}) {
    const auto cluster = Cluster::build(dgx_h100(), 32, routed(rail_optimized(), routing));
    const StaticRouter router(cluster);
    const auto fabric_links = [&](int64_t a, int64_t b) {
      double sum = 0.0;
      for (const LinkShare& s : shares_of(router, cluster.gpu(a), cluster.gpu(b)))
        if (cluster.links()[s.link].kind == LinkKind::fabric) sum += s.share;
      return sum;
    };
    REQUIRE(fabric_links(3, 8 + 3) == 0.0);
    REQUIRE(fabric_links(3, 8 + 5) == Approx(2.0));  // leaf 3 -> spine -> leaf 5
  }
}

}  // namespace
}  // namespace stepcast::topology
