#include "sim/network/links/fabric_bound.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "sim/files/toml_value.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/scenario/catalogue.hpp"
#include "tests/session.hpp"
#include "tests/sim/collective_rows.hpp"
#include "topology/router.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using workloads::CollectiveKind;

namespace {

/// An AlltoAll of 1 GiB over 64 nodes of DGX H100 under this oversubscription.
std::pair<CollectiveTime, CollectiveTime> with_and_without(double oversubscription) {
  const Catalogue& catalogue = stepcast::catalogue();
  topology::FabricSpec fabric = catalogue.fabric(toml_text("fat-tree", "test"));
  fabric.oversubscription = oversubscription;
  const auto cluster =
      topology::Cluster::build(catalogue.node(toml_text("dgx-h100", "test")), 64, fabric);
  const topology::StaticRouter router(cluster);
  const NcclNetwork network(cluster, router, catalogue.nccl("2.20"));
  std::vector<std::int64_t> ranks(512);
  std::iota(ranks.begin(), ranks.end(), 0);
  const Bytes bytes(std::int64_t{1} << 30);
  const CollectiveTime alone = network.time_of(plain_collective(CollectiveKind::all_to_all, bytes),
                                               shape_of(cluster, ranks));
  return {alone,
          bound_by_fabric(
              alone,
              fabric_load(network.loads_of({CollectiveKind::all_to_all, alone.algorithm}, ranks),
                          cluster),
              bytes, bus_factor(CollectiveKind::all_to_all, 512))};
}

}  // namespace

TEST_CASE("a full fabric leaves a collective as it is") {
  const auto [alone, bound] = with_and_without(1.0);
  CHECK(bound.duration == alone.duration);
}

TEST_CASE("an oversubscribed fabric stretches the transfer and nothing else") {
  const auto [alone, bound] = with_and_without(4.0);
  CHECK(bound.latency == alone.latency);
  CHECK(bound.transfer > alone.transfer);
  CHECK(bound.duration == bound.latency + bound.transfer);
  const auto [same, twice] = with_and_without(8.0);
  CHECK(seconds(twice.transfer) == Approx(2 * seconds(bound.transfer)).epsilon(0.01));
  CHECK(bound.busbw < alone.busbw);
}
