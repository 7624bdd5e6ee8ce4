#include "topology/router.hpp"

#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "tests/topology/machines.hpp"
#include "topology/graph_checks.hpp"

namespace stepcast::topology {
namespace {

using std::int64_t;

/// A path is a chain of links from one end to the other.
void check_chain(const Cluster& cluster, DeviceId from, DeviceId to, const Path& path) {
  DeviceId here = from;
  for (const LinkId link : path) {
    REQUIRE(cluster.links()[link].from == here);
    here = cluster.links()[link].to;
  }
  REQUIRE(here == to);
}

const std::vector<LinkKind> nvlink_only{LinkKind::nvlink};
const std::vector<LinkKind> pcie_only{LinkKind::pcie, LinkKind::socket};
const std::vector<LinkKind> fabric_only{LinkKind::injection, LinkKind::fabric};

/// Every pair of GPUs and every GPU to every NIC of its node: a chain, and as short as
/// breadth-first search finds. Between nodes the two NICs are given (those of the GPUs' rails), so
/// the search goes from GPU to NIC, NIC to NIC and NIC to GPU.
void check_all_pairs(const Cluster& cluster) {
  const StaticRouter router(cluster);
  const int64_t gpus = cluster.node().gpus;
  const bool nvlink = cluster.node().kind != NodeKind::pcie;
  const auto rail_nic = [&](int64_t g) {
    return cluster.nic(g / gpus, cluster.nic_of_gpu(g % gpus));
  };
  const auto length = [&](DeviceId from, DeviceId to, std::uint64_t key) {
    const Path path = router.path(from, to, key);
    check_chain(cluster, from, to, path);
    return static_cast<int64_t>(path.size());
  };
  std::vector<int64_t> to_rail;  // of every GPU
  for (int64_t g = 0; g < cluster.num_gpus(); ++g)
    to_rail.push_back(hops_from(cluster, cluster.gpu(g), pcie_only)[rail_nic(g)].value());

  for (int64_t a = 0; a < cluster.num_gpus(); ++a) {
    const DeviceId from = cluster.gpu(a);
    const auto inside = hops_from(cluster, from, nvlink ? nvlink_only : pcie_only);
    const auto to_nics = hops_from(cluster, from, pcie_only);
    const auto between = hops_from(cluster, rail_nic(a), fabric_only);
    for (int64_t b = 0; b < cluster.num_gpus(); ++b) {
      const int64_t shortest = a / gpus == b / gpus ? inside[cluster.gpu(b)].value()
                                                    : to_rail[static_cast<std::size_t>(a)] +
                                                          between[rail_nic(b)].value() +
                                                          to_rail[static_cast<std::size_t>(b)];
      for (const std::uint64_t key : {0u, 1u, 7u})
        REQUIRE(length(from, cluster.gpu(b), key) == shortest);
    }
    for (int64_t nic = 0; nic < cluster.node().nics; ++nic) {
      const DeviceId to = cluster.nic(a / gpus, nic);
      REQUIRE(length(from, to, 0) == to_nics[to]);
    }
  }
}

TEST_CASE("no path is longer than breadth-first search finds, on every pair") {
  for (NodeSpec node : {dgx_1v(), dgx_a100(), dgx_h100(), pcie_node()})
    for (FabricSpec fabric : {rail_optimized(), fat_tree()})
      for (int64_t nodes : {1, 2, 5, 9}) {
        fabric.ports = 16;  // small switches, so that few nodes need several leaves and tiers
        INFO(node.name << " x " << nodes << " on " << fabric.name);
        check_all_pairs(Cluster::build(node, nodes, fabric));
      }
}

TEST_CASE("a node with two sockets and no PCIe switch hangs its devices on the sockets") {
  NodeSpec node = pcie_node();
  node.pcie_switches = 0;
  check_all_pairs(Cluster::build(node, 3, fat_tree()));
}

TEST_CASE("three and four tiers route as short as breadth-first search finds") {
  NodeSpec node = dgx_1v();
  FabricSpec fabric = rail_optimized();
  fabric.ports = 4;  // leaves of 2 nodes
  for (int64_t tiers : {3, 4}) {
    fabric.tiers = tiers;
    for (FabricKind kind : {FabricKind::rail_optimized, FabricKind::fat_tree}) {
      fabric.kind = kind;
      node.nics = kind == FabricKind::fat_tree ? 2 : 1;
      const auto cluster = Cluster::build(node, 7, fabric);
      REQUIRE(cluster.num_tiers() == tiers);
      check_all_pairs(cluster);
    }
  }
}

TEST_CASE("same rail in one unit crosses one switch, otherwise three, five through the core") {
  const auto eight = Cluster::build(dgx_h100(), 64, rail_optimized());  // 2 SU
  REQUIRE(eight.num_tiers() == 2);
  REQUIRE(eight.nodes_per_unit() == 32);
  const StaticRouter router(eight);
  const auto crossed = [&](int64_t a, int64_t b) {
    return switches_on(eight, router.path(eight.gpu(a), eight.gpu(b), 0));
  };
  REQUIRE(crossed(0, 8) == 1);
  REQUIRE(crossed(3, 31 * 8 + 3) == 1);
  REQUIRE(crossed(0, 9) == 3);
  REQUIRE(crossed(0, 32 * 8) == 3);
  const auto many = Cluster::build(dgx_h100(), 512, rail_optimized());  // 16 SU
  REQUIRE(many.num_tiers() == 3);
  REQUIRE(many.switches_between(0, 0, 31, 0) == 1);
  REQUIRE(many.switches_between(0, 0, 32, 0) == 3);
  REQUIRE(many.switches_between(0, 0, 1, 1) == 5);
}

TEST_CASE("in a plain fat tree all GPUs of a leaf's nodes are one switch apart") {
  const auto cluster = Cluster::build(dgx_h100(), 16, fat_tree());
  REQUIRE(cluster.nodes_per_unit() == 4);
  REQUIRE(cluster.switches_between(0, 0, 3, 7) == 1);
  REQUIRE(cluster.switches_between(0, 0, 4, 0) == 3);
}

TEST_CASE("GPUs on two nodes meet through the NICs of their rails") {
  const auto cluster = Cluster::build(dgx_h100(), 4, rail_optimized());
  const Path path = StaticRouter(cluster).path(cluster.gpu(2), cluster.gpu(13), 0);
  std::vector<std::string> names{cluster.name_of(cluster.gpu(2))};
  for (LinkId link : path) names.push_back(cluster.name_of(cluster.links()[link].to));
  REQUIRE(names == std::vector<std::string>{"node0/gpu2", "node0/pcie2", "node0/nic2", "leaf2",
                                            "spine0", "leaf5", "node1/nic5", "node1/pcie5",
                                            "node1/gpu5"});
}

TEST_CASE("without GPUDirect the NIC is reached through the CPU") {
  NodeSpec node = dgx_1v();
  const auto direct = Cluster::build(node, 2, fat_tree());
  node.gpu_direct = false;
  const auto bounced = Cluster::build(node, 2, fat_tree());
  const auto hops = [](const Cluster& c) {
    const Path path = StaticRouter(c).path(c.gpu(1), c.nic(0, 0), 0);
    check_chain(c, c.gpu(1), c.nic(0, 0), path);
    return path.size();
  };
  REQUIRE(hops(direct) == 2);
  REQUIRE(hops(bounced) == 4);
}

TEST_CASE("the flow key picks the NVSwitch, and every plane is used") {
  const auto cluster = Cluster::build(dgx_h100(), 1, fat_tree());
  const StaticRouter router(cluster);
  std::set<LinkId> first;
  for (std::uint64_t key = 0; key < 4; ++key)
    first.insert(router.path(cluster.gpu(0), cluster.gpu(5), key).front());
  const auto out = cluster.nvlink_out(0);
  REQUIRE(first == std::set<LinkId>(out.begin(), out.end()));
}

TEST_CASE("shift patterns do not collide in a non-blocking tree") {
  // Destination-modulo: when every NIC sends to the NIC `shift` further on (in port order), no
  // cable carries more than one flow, so no bundle more than its count.
  const auto cluster = Cluster::build(dgx_h100(), 128, fat_tree());  // 32 full leaves
  const StaticRouter router(cluster);
  const int64_t n = cluster.num_gpus();
  for (int64_t shift : {1, 32, 33, 500, 1023}) {
    std::vector<int64_t> flows(cluster.links().size(), 0);
    for (int64_t a = 0; a < n; ++a) {
      const int64_t b = (a + shift) % n;
      if (a / 8 == b / 8) continue;
      for (LinkId link : router.path(cluster.gpu(a), cluster.gpu(b), 0)) ++flows[link];
    }
    for (LinkId link = 0; link < flows.size(); ++link)
      if (cluster.links()[link].kind == LinkKind::fabric)
        REQUIRE(flows[link] <= cluster.links()[link].count);
  }
}

TEST_CASE("the way back mirrors the way there when the keys make both choose alike") {
  const auto cluster = Cluster::build(dgx_h100(), 40, rail_optimized());
  const StaticRouter router(cluster);
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const auto a = static_cast<int64_t>(random() % 320), b = static_cast<int64_t>(random() % 320);
    const Path there = router.path(cluster.gpu(a), cluster.gpu(b), random());
    check_chain(cluster, cluster.gpu(a), cluster.gpu(b), there);
    const Path back = router.path(cluster.gpu(b), cluster.gpu(a), 0);
    REQUIRE(back.size() == there.size());
    REQUIRE(latency_of(cluster, back) == latency_of(cluster, there));
  }
}

TEST_CASE("a path's latency is the sum of its parts") {
  // Two PCIe links at each end (0.5 us each), two passes through a NIC (0.2 us), two cables of
  // 0.1 us and one switch of 0.13 us: 2.73 us.
  const auto cluster = Cluster::build(dgx_h100(), 2, rail_optimized());
  const Path path = StaticRouter(cluster).path(cluster.gpu(0), cluster.gpu(8), 0);
  REQUIRE(latency_of(cluster, path) == 2730_ns);
}

}  // namespace
}  // namespace stepcast::topology
