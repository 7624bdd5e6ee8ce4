#include "sim/network/links/picture.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/collective_rows.hpp"
#include "topology/cluster.hpp"

using namespace stepcast;
using namespace stepcast::sim;

TEST_CASE("a link holds no transfer that never takes a millionth of it") {
  const topology::FabricSpec fabric{.name = "test",
                                    .kind = topology::FabricKind::rail_optimized,
                                    .ports = 64,
                                    .tiers = 0,
                                    .oversubscription = 1.0,
                                    .link = {},
                                    .switch_latency = 150_ns,
                                    .cable_latency = 25_ns};
  const auto cluster = topology::Cluster::build(dgx(topology::NcclGeneration::hopper), 2, fabric);
  topology::LinkId nic = 0;
  while (cluster.links()[nic].kind != topology::LinkKind::injection) ++nic;
  const double capacity = cluster.links()[nic].bandwidth.value;

  const LinkPicture picture(cluster, {{{nic, 1.0}}, {{nic, 0.5}}, {{nic, 0.5}}});
  engine::System system;
  system.communicators.resize(3);
  picture.put_on(system, {0.9 * capacity, 0.9 * capacity, 1e-6 * capacity});
  REQUIRE(system.link_capacity.size() == 1);
  CHECK(system.communicators[0].loads.size() == 1);
  CHECK(system.communicators[1].loads.size() == 1);
  CHECK(system.communicators[2].loads.empty());

  engine::System wide;  // what it carries together with others that matter is held against it
  wide.communicators.resize(3);
  picture.put_on(wide, {0.9 * capacity, 0.9 * capacity, 3e-6 * capacity});
  CHECK(wide.communicators[2].loads.size() == 1);
}
