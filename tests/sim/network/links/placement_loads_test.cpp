// Rail-only fabrics and random places, as collectives see them.
#include <catch2/catch.hpp>

#include <map>
#include <numeric>

#include "sim/network/links/fabric_bound.hpp"
#include "sim/network/links/loads.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

using topology::FabricKind;
using workloads::CollectiveKind;

struct PlacedMachine {
  PlacedMachine(FabricKind kind, std::int64_t nodes, topology::JobPlace job = {},
                double oversubscription = 1.0)
      : cluster(topology::Cluster::build(
            catalogue().node(toml_text("dgx-h100", "test")), nodes,
            {.name = "test", .kind = kind, .oversubscription = oversubscription, .job = job})),
        router(cluster),
        loads(cluster, router) {}

  std::vector<LinkLoad> of(const Delivery& delivery) const {
    std::vector<std::int64_t> all(static_cast<std::size_t>(cluster.num_gpus()));
    std::iota(all.begin(), all.end(), 0);
    return loads.of(delivery, all);
  }
  /// Bytes over links of a kind.
  double sum(const std::vector<LinkLoad>& of, topology::LinkKind kind) const {
    double out = 0;
    for (const LinkLoad& load : of)
      if (cluster.links()[load.link].kind == kind) out += load.bytes_per_byte;
    return out;
  }

  topology::Cluster cluster;
  topology::StaticRouter router;
  LinkLoads loads;
};

/// The fullest link between switches over the fullest NIC.
double narrowness(const PlacedMachine& m, const Delivery& delivery) {
  const FabricLoad load = fabric_load(m.of(delivery), m.cluster);
  return load.fabric / load.nic;
}

constexpr Delivery ring{CollectiveKind::all_reduce, Algorithm::ring};
constexpr Delivery pairs{CollectiveKind::all_to_all, Algorithm::p2p};

}  // namespace

TEST_CASE("rail-only: rings and all-to-all put on NICs and NVLinks what they do on joined rails") {
  const PlacedMachine joined(FabricKind::rail_optimized, 16), only(FabricKind::rail_only, 16);
  for (const Delivery& delivery : {ring, pairs})
    for (const auto kind : {topology::LinkKind::injection, topology::LinkKind::nvlink})
      CHECK(only.sum(only.of(delivery), kind) ==
            Approx(joined.sum(joined.of(delivery), kind)).epsilon(1e-9));
  CHECK(only.sum(only.of(ring), topology::LinkKind::fabric) == 0);
}

TEST_CASE("rail-only: an all-to-all of members on few rails changes rails over NVLink") {
  // Members on rail 0 of node 0 and rail 1 of node 1: neither node has one on the other's rail.
  const PlacedMachine only(FabricKind::rail_only, 2);
  const auto loads = only.loads.of(pairs, {0, 9});
  std::map<topology::LinkId, double> by;
  for (const LinkLoad& load : loads) by[load.link] += load.bytes_per_byte;
  CHECK(by[only.cluster.nic_up(0, 1)] > 0);  // to rank 9 by rail 1
  CHECK(by[only.cluster.nic_down(1, 1)] > 0);
  CHECK(by[only.cluster.nic_up(1, 0)] > 0);
  CHECK(by[only.cluster.nic_down(0, 0)] > 0);
  CHECK(only.sum(loads, topology::LinkKind::nvlink) > 0);
}

TEST_CASE("a packed ring crosses few uplinks, a random one nearly as many as it has nodes") {
  // 128 nodes under 4 leaves a rail at 4:1 (51 down, 13 up).
  const PlacedMachine packed(FabricKind::rail_optimized, 128, {}, 4);
  const PlacedMachine random(FabricKind::rail_optimized, 128,
                             {.placement = topology::Placement::random}, 4);
  const double few = packed.sum(packed.of(ring), topology::LinkKind::fabric);
  const double many = random.sum(random.of(ring), topology::LinkKind::fabric);
  CHECK(many > 10 * few);
  CHECK(narrowness(packed, ring) <= 1.002);
  CHECK(narrowness(random, ring) > 2);
  CHECK(random.sum(random.of(ring), topology::LinkKind::injection) ==
        Approx(packed.sum(packed.of(ring), topology::LinkKind::injection)));
}

TEST_CASE("law: other jobs on the fabric make its links fuller in proportion") {
  const topology::JobPlace shared{.placement = topology::Placement::random, .other_jobs = 0.5};
  const topology::JobPlace alone{.placement = topology::Placement::random};
  const PlacedMachine one(FabricKind::rail_optimized, 128, alone, 4);
  const PlacedMachine two(FabricKind::rail_optimized, 128, shared, 4);
  CHECK(narrowness(two, ring) == Approx(2 * narrowness(one, ring)));
}

}  // namespace stepcast::sim
