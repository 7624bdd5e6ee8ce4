// NVLink domains of several trays: one node to NVLink, many to PCIe and the fabric.
#include <catch2/catch.hpp>

#include <set>

#include "engine/check.hpp"
#include "tests/topology/machines.hpp"
#include "topology/rack.hpp"
#include "topology/router.hpp"

namespace stepcast::topology {
namespace {

using std::int64_t;

int64_t links_of(const Cluster& cluster, LinkKind kind) {
  int64_t count = 0;
  for (const Link& link : cluster.links()) count += link.kind == kind ? link.count : 0;
  return count / 2;
}

TEST_CASE("a rack's NVLinks reach every switch, its sockets only those of their tray") {
  const auto cluster = Cluster::build(nvl72(), 1, rail_optimized());
  CHECK(links_of(cluster, LinkKind::nvlink) == 72 * 18);
  CHECK(links_of(cluster, LinkKind::socket) == 18);  // one in each tray
  CHECK(links_of(cluster, LinkKind::pcie) == 72 + 72);
  CHECK(cluster.bisection() == 900_GBps * 36.0);
}

TEST_CASE("every GPU's NIC is in its own tray, no way by PCIe leaves it") {
  const auto cluster = Cluster::build(nvl72(), 2, rail_optimized());
  const StaticRouter router(cluster);
  for (int64_t g = 0; g < 72; ++g) {
    CHECK(cluster.nic_of_gpu(g) == g);
    const Path path = router.path(cluster.gpu(g), cluster.nic(0, g), 0);
    REQUIRE(path.size() == 2);
    CHECK(cluster.devices()[cluster.links()[path[0]].to].index == g / 2);  // its CPU
  }
  CHECK_THROWS_AS(router.path(cluster.gpu(0), cluster.nic(0, 4), 0), BrokenPromise);
}

TEST_CASE("the fabric joins trays: four rails, units of 32 trays") {
  const auto cluster = Cluster::build(nvl72(), 8, rail_optimized());  // 144 trays
  CHECK(cluster.count(DeviceKind::leaf) == 4 * 5);
  std::set<DeviceId> leaves;
  for (int64_t nic = 0; nic < 8; ++nic) leaves.insert(cluster.links()[cluster.nic_up(0, nic)].to);
  CHECK(leaves.size() == 4);
  CHECK(cluster.switches_between(0, 0, 0, 4) == 1);  // the same rail of the next tray
  CHECK(cluster.switches_between(0, 0, 1, 0) == 1);  // trays 0 and 18 share a leaf
  CHECK(cluster.switches_between(0, 0, 2, 0) == 3);  // trays 0 and 36 do not
  CHECK(cluster.nodes_per_unit() == 1);
  for (std::size_t id = 0; id < cluster.links().size(); ++id)
    CHECK(cluster.links()[reverse(static_cast<LinkId>(id))].to == cluster.links()[id].from);
}

TEST_CASE("a domain is resized with all that its trays hold") {
  const NodeSpec used = with_gpus(nvl72(), 64, "test");
  CHECK(used.trays() == 16);
  CHECK(used.nics == 64);
  CHECK(used.sockets == 32);
  CHECK(used.nvswitches == 18);
  CHECK(with_gpus(with_gpus(nvl72(), 576, "test"), 72, "test") == nvl72());
  const auto large = Cluster::build(with_gpus(nvl72(), 576, "test"), 2, rail_optimized());
  CHECK(large.num_gpus() == 1152);
  CHECK(with_gpus(dgx_h100(), 4, "test").nics == 4);
  for (const int64_t gpus : {0, 6, 65}) CHECK_THROWS_AS(with_gpus(nvl72(), gpus, "x"), InputError);
  CHECK_THROWS_AS(with_gpus(dgx_1v(), 4, "test"), InputError);
  CHECK_THROWS_AS(with_gpus(dgx_h100(), 3, "test"), InputError);  // 3/8 of two sockets
}

TEST_CASE("powers of two leave GPUs of a rack idle") {
  CHECK(even_domain(nvl72(), 256) == 64);
  CHECK(even_domain(nvl72(), 1440) == 72);
  CHECK(even_domain(nvl72(), 16) == 16);
  CHECK(even_domain(nvl72(), 2) == 0);
}

TEST_CASE("trays that are not alike are refused") {
  NodeSpec node = nvl72();
  node.nics = 70;
  CHECK_THROWS_WITH(Cluster::build(node, 1, rail_optimized()), Catch::Contains("no equal trays"));
  node = nvl72();
  node.gpus_per_tray = 5;
  CHECK_THROWS_AS(Cluster::build(node, 1, rail_optimized()), InputError);
  node = pcie_node();
  node.gpus_per_tray = 4;
  CHECK_THROWS_WITH(Cluster::build(node, 1, rail_optimized()), Catch::Contains("only NVSwitches"));
}

TEST_CASE("GPUs share the ways up to their processors, and these memories equally") {
  NodeSpec node = dgx_h100();
  node.pcie = 63_GBps;
  node.pcie_switches = 8;
  CHECK(host_share(node) == HostShare{63_GBps, {}});
  node.pcie_switches = 4;  // two GPUs on each
  node.host_memory = 614.4_GBps;
  CHECK(host_share(node) == HostShare{31.5_GBps, 76.8_GBps});
  node.host_link = 450_GBps;  // no faster than the memory behind it
  CHECK(host_share(node) == HostShare{76.8_GBps, 76.8_GBps});
  node.gpus_per_tray = 0;
  CHECK(host_share(with_gpus(node, 4, "test")).memory == 76.8_GBps);
}

}  // namespace
}  // namespace stepcast::topology
