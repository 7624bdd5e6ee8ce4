#include <random>

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/topology/machines.hpp"
#include "topology/graph_checks.hpp"
#include "topology/router.hpp"

namespace stepcast::topology {
namespace {

using std::int64_t;

/// Cables between devices of two kinds.
int64_t cables(const Cluster& cluster, DeviceKind from, DeviceKind to) {
  int64_t sum = 0;
  for (const Link& link : cluster.links())
    if (cluster.devices()[link.from].kind == from && cluster.devices()[link.to].kind == to)
      sum += link.count;
  return sum;
}

/// The most cables that end at one fabric switch.
int64_t most_ports_used(const Cluster& cluster) {
  std::vector<int64_t> used(cluster.devices().size(), 0);
  for (const Link& link : cluster.links())
    if (cluster.devices()[link.from].node < 0) used[link.from] += link.count;
  return *std::max_element(used.begin(), used.end());
}

struct SuperPod {
  int64_t units, leaf, spine, core, node_leaf, leaf_spine, spine_core;
};

TEST_CASE("the DGX SuperPOD plans come out: switches and cables for 2 to 64 units") {
  // NVIDIA DGX SuperPOD reference architecture (B200 edition, 64-port switches).
  const SuperPod plans[] = {{2, 16, 8, 0, 512, 512, 0},
                            {4, 32, 16, 0, 1024, 1024, 0},
                            {8, 64, 32, 0, 2048, 2048, 0},
                            {16, 128, 128, 64, 4096, 4096, 4096},
                            {32, 256, 256, 128, 8192, 8192, 8192},
                            {64, 512, 512, 256, 16384, 16384, 16384}};
  for (const SuperPod& plan : plans) {
    INFO(plan.units << " units");
    const auto cluster = Cluster::build(dgx_h100(), 32 * plan.units, rail_optimized());
    CHECK(cluster.nodes_per_unit() == 32);
    CHECK(cluster.num_gpus() == 256 * plan.units);
    CHECK(cluster.count(DeviceKind::leaf) == plan.leaf);
    CHECK(cluster.count(DeviceKind::spine) == plan.spine);
    CHECK(cluster.count(DeviceKind::core) == plan.core);
    CHECK(cables(cluster, DeviceKind::nic, DeviceKind::leaf) == plan.node_leaf);
    CHECK(cables(cluster, DeviceKind::leaf, DeviceKind::spine) == plan.leaf_spine);
    CHECK(cables(cluster, DeviceKind::spine, DeviceKind::core) == plan.spine_core);
  }
}

TEST_CASE("the plans of other SuperPODs come out as well") {
  // Selene: 140 DGX A100 on 40-port switches, 7 units of 20: 56 leaf, 80 spine, 28 core.
  FabricSpec hdr = rail_optimized();
  hdr.ports = 40;
  const auto selene = Cluster::build(dgx_a100(), 140, hdr);
  CHECK(selene.count(DeviceKind::leaf) == 56);
  CHECK(selene.count(DeviceKind::spine) == 80);
  CHECK(selene.count(DeviceKind::core) == 28);
  // 144-port switches (B300 XDR edition), units of 72: 8 + 4 for one, 64 + 36 for eight.
  FabricSpec xdr = rail_optimized();
  xdr.ports = 144;
  for (auto [units, leaf, spine] : {std::array{1, 8, 4}, std::array{8, 64, 36}}) {
    const auto cluster = Cluster::build(dgx_h100(), 72 * units, xdr);
    CHECK(cluster.count(DeviceKind::leaf) == leaf);
    CHECK(cluster.count(DeviceKind::spine) == spine);
  }
}

TEST_CASE("as few tiers as the size needs, up to 131,072 GPUs") {
  const auto tiers = [](const FabricSpec& fabric, int64_t gpus) {
    return Cluster::build(dgx_h100(), gpus / 8, fabric).num_tiers();
  };
  FabricSpec wide = rail_optimized();
  wide.ports = 144;
  CHECK(tiers(rail_optimized(), 8) == 0);
  CHECK(tiers(rail_optimized(), 16) == 2);
  CHECK(tiers(fat_tree(), 64) == 1);
  CHECK(tiers(fat_tree(), 72) == 2);
  for (const FabricSpec& fabric : {rail_optimized(), fat_tree()}) {
    CHECK(tiers(fabric, 2048) == 2);
    CHECK(tiers(fabric, 2056) == 3);
    CHECK(tiers(fabric, 65536) == 3);
    CHECK(tiers(fabric, 65544) == 4);
    CHECK(tiers(fabric, 131072) == 4);
  }
  CHECK(tiers(wide, 131072) == 3);
}

std::string refusal(const NodeSpec& node, int64_t nodes, const FabricSpec& fabric) {
  try {
    Cluster::build(node, nodes, fabric, "cluster.toml:7");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no refusal";
}

TEST_CASE("too many nodes are refused with what would do") {
  FabricSpec fabric = rail_optimized();
  fabric.tiers = 2;
  CHECK(refusal(dgx_h100(), 257, fabric) ==
        "cluster.toml:7: fabric rail-optimized cannot join 257 nodes of 8 NICs: 2 tiers of 64-port "
        "switches hold 256, tiers = 3 would hold them");
  fabric.tiers = 4;
  fabric.ports = 8;
  CHECK(refusal(dgx_h100(), 1000, fabric) ==
        "cluster.toml:7: fabric rail-optimized cannot join 1000 nodes of 8 NICs: 4 tiers of 8-port "
        "switches hold 64, switches with ports = 36 would hold them");
  fabric.tiers = 1;  // rails meet only in a second tier
  fabric.ports = 64;
  CHECK(refusal(dgx_h100(), 2, fabric).find("tiers = 2 would hold them") != std::string::npos);
}

TEST_CASE("contradictions in node and fabric are refused") {
  const auto refused = [](NodeSpec node, FabricSpec fabric, int64_t nodes = 2) {
    return refusal(node, nodes, fabric) != "no refusal";
  };
  NodeSpec node = dgx_1v();
  node.nvlinks[3][4] = 1;  // not symmetric
  CHECK(refused(node, fat_tree()));
  node = dgx_1v();
  node.nvlinks.pop_back();
  CHECK(refused(node, fat_tree()));
  node = dgx_h100();
  node.nics = 0;
  CHECK(refused(node, fat_tree()));
  CHECK_FALSE(refused(node, fat_tree(), 1));
  node = dgx_h100();
  node.gpu.nvlink_links = 3;  // fewer than NVSwitches
  CHECK(refused(node, fat_tree()));
  for (double k : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), 1e300}) {
    FabricSpec fabric = fat_tree();
    fabric.oversubscription = k;
    CHECK(refused(dgx_h100(), fabric));
  }
  CHECK(refused(dgx_h100(), fat_tree(), 0));
  CHECK(refused(dgx_h100(), fat_tree(), std::numeric_limits<int64_t>::max()));
}

BytesPerSecond half_times_injection(const Cluster& cluster) {
  return cluster.node().nic * static_cast<double>(cluster.node().nics) *
         static_cast<double>(cluster.num_nodes() / 2);
}

TEST_CASE("a non-blocking fabric carries half the nodes at full injection") {
  for (const NodeSpec& node : {dgx_1v(), dgx_a100(), dgx_h100()})
    for (const FabricSpec& fabric : {rail_optimized(), fat_tree()})
      for (int64_t nodes : {2, 3, 16, 33, 64, 250, 512}) {
        INFO(nodes << " x " << node.name << " on " << fabric.name);
        const auto cluster = Cluster::build(node, nodes, fabric);
        CHECK(cluster.bisection() == half_times_injection(cluster));
      }
}

TEST_CASE("oversubscription k leaves 1/k of the bisection where the cut runs between leaves") {
  FabricSpec fabric = fat_tree();
  for (int64_t k : {1, 3, 7, 15}) {
    fabric.oversubscription = static_cast<double>(k);
    const int64_t nodes_per_leaf = 64 * k / (k + 1) / 8;
    const auto cluster = Cluster::build(dgx_h100(), 4 * nodes_per_leaf, fabric);
    REQUIRE(cluster.nodes_per_unit() == nodes_per_leaf);
    // A leaf's uplinks are rounded up, so that it is never more oversubscribed than asked.
    const int64_t uplinks = (8 * nodes_per_leaf + k - 1) / k;
    CHECK(cluster.bisection() == cluster.node().nic * static_cast<double>(2 * uplinks));
  }
}

TEST_CASE("a cut through a leaf carries what the leaf itself switches") {
  // 3:1, 6 nodes to a leaf with 16 uplinks, 18 nodes: leaf 0 is left, leaf 2 right, leaf 1 half and
  // half. 16 cables from leaf 0 to leaf 2, and 3 x 8 NICs across leaf 1: 40 x 50 GB/s.
  FabricSpec fabric = fat_tree();
  fabric.oversubscription = 3.0;
  CHECK(Cluster::build(dgx_h100(), 18, fabric).bisection() == 2000_GBps);
  // One unit of 48 nodes: every rail meets in its leaf, nothing needs the uplinks.
  fabric = rail_optimized();
  fabric.oversubscription = 3.0;
  const auto unit = Cluster::build(dgx_h100(), 48, fabric);
  CHECK(unit.bisection() == half_times_injection(unit));
}

TEST_CASE("the bisection of one node is that of its NVLinks") {
  CHECK(Cluster::build(dgx_1v(), 1, fat_tree()).bisection() == 150_GBps);     // 6 links of 25
  CHECK(Cluster::build(dgx_a100(), 1, fat_tree()).bisection() == 1200_GBps);  // 4 x 300
  CHECK(Cluster::build(dgx_h100(), 1, fat_tree()).bisection() == 1800_GBps);  // 4 x 450
}

/// A node and fabric drawn at random; most fit.
struct Draw {
  NodeSpec node = dgx_h100();
  FabricSpec fabric;
  int64_t nodes = 1;
};

Draw draw(std::mt19937_64& random) {
  const auto any = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  Draw d;
  d.fabric = any(0, 1) == 0 ? rail_optimized() : fat_tree();
  d.fabric.ports = any(4, 40);
  d.fabric.tiers = any(0, 4);
  d.fabric.oversubscription = static_cast<double>(any(2, 12)) / 2.0;
  d.node.kind = any(0, 1) == 0 ? NodeKind::nvswitch : NodeKind::pcie;
  d.node.gpus = any(1, 9);
  d.node.nics = any(1, 9);
  d.node.nvswitches = any(1, 6);
  d.node.pcie_switches = any(0, 5);
  d.node.sockets = any(1, 3);
  d.node.gpu_direct = any(0, 1) == 0;
  d.nodes = any(2, 60);
  return d;
}

TEST_CASE("any cluster that is built is connected, keeps its ports and routes every pair") {
  std::mt19937_64 random(20);
  int built = 0;
  for (int i = 0; i < 400; ++i) {
    const Draw d = draw(random);
    INFO(i << ": " << d.nodes << " nodes, " << d.node.gpus << " GPUs, " << d.node.nics << " NICs, "
           << d.fabric.name << " " << d.fabric.ports << " ports " << d.fabric.tiers << " tiers");
    if (refusal(d.node, d.nodes, d.fabric) != "no refusal") continue;
    ++built;
    const auto cluster = Cluster::build(d.node, d.nodes, d.fabric);
    REQUIRE(strongly_connected(cluster));
    REQUIRE(most_ports_used(cluster) <= d.fabric.ports);
    for (LinkId link = 0; link < cluster.links().size(); ++link) {
      const Link &one = cluster.links()[link], &back = cluster.links()[reverse(link)];
      REQUIRE((one.from == back.to && one.to == back.from && one.count == back.count));
    }
    const StaticRouter router(cluster);
    for (int pair = 0; pair < 50; ++pair) {
      const auto gpus = static_cast<std::uint64_t>(cluster.num_gpus());
      DeviceId here = cluster.gpu(static_cast<int64_t>(random() % gpus));
      const DeviceId to = cluster.gpu(static_cast<int64_t>(random() % gpus));
      for (const LinkId link : router.path(here, to, random())) {
        REQUIRE(cluster.links()[link].from == here);
        here = cluster.links()[link].to;
      }
      REQUIRE(here == to);
    }
  }
  REQUIRE(built > 150);
}

TEST_CASE("the merged bisection equals max-flow over every NIC and cable") {
  std::mt19937_64 random(5);
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    const Draw d = draw(random);
    if (refusal(d.node, d.nodes, d.fabric) != "no refusal") continue;
    ++compared;
    const auto cluster = Cluster::build(d.node, d.nodes, d.fabric);
    std::vector<DeviceId> left, right;
    for (int64_t n = 0; n < d.nodes; ++n)
      for (int64_t j = 0; j < d.node.nics; ++j)
        (n < d.nodes / 2 ? left : right).push_back(cluster.nic(n, j));
    CHECK(cluster.bisection() ==
          max_flow(cluster, left, right, {LinkKind::injection, LinkKind::fabric}));
  }
  REQUIRE(compared > 20);
}

}  // namespace
}  // namespace stepcast::topology
