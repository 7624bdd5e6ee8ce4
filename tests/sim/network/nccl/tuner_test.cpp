#include "sim/network/nccl/tuner.hpp"

#include <catch2/catch.hpp>

#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

constexpr CollectiveKind kinds[] = {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                                    CollectiveKind::reduce};

std::shared_ptr<const Network> two_nodes() {
  return session().network(read_scenario(
      read_toml("[cluster]\nnode = \"dgx-h100\"\nnodes = 2\n[collective]\nkind = \"all_reduce\"\n"
                "bytes = \"1 MiB\"\n",
                "a.toml"),
      catalogue()));
}

std::vector<TunerChoice> choices(const Network& network, CollectiveKind kind, double least_gain) {
  const TunerQuestion question{.cluster = network.cluster(),
                               .router = network.router(),
                               .nccl = *network.nccl,
                               .least_gain = least_gain};
  return tuner_choices(question, kind, tuner_shapes(network.cluster()));
}

}  // namespace

TEST_CASE("groups are powers of two of members and nodes") {
  const auto shapes = tuner_shapes(two_nodes()->cluster());
  // 2, 4, 8 members on one node; 1, 2, 4, 8 on each of two.
  REQUIRE(shapes.size() == 7);
  CHECK(shapes.front() == GroupShape{2, 1, 2, 1});
  CHECK(shapes.back() == GroupShape{16, 2, 8, 1});
}

TEST_CASE("what is taken is one of NCCL's ways, and no slower than NCCL's choice") {
  const auto network = two_nodes();
  const NcclTuning& tuning = network->nccl->tuning;
  for (const CollectiveKind kind : kinds)
    for (const TunerChoice& c : choices(*network, kind, 0.0)) {
      const NcclMachine machine = planned_machine(network->cluster().node(), c.shape, {});
      const NcclCall call{.kind = kind, .bytes = c.bytes};
      const NcclOption usual = nccl_choice(tuning, machine, call);
      CHECK(c.usual.algorithm == usual.algorithm);
      CHECK(c.usual.protocol == usual.protocol);
      bool legal = false;
      for (const NcclOption& option : nccl_options(tuning, machine, call))
        legal |= option.algorithm == c.taken.algorithm && option.protocol == c.taken.protocol;
      CHECK(legal);
      CHECK(c.gain() >= 1.0);
      CHECK(c.taken.channels >= 1);
    }
}

TEST_CASE("a gain that is not enough leaves NCCL's choice, and ranges leave no size out") {
  const auto network = two_nodes();
  for (const CollectiveKind kind : kinds) {
    const auto all = choices(*network, kind, 1e9);
    for (std::size_t i = 0; i < all.size(); ++i) {
      CHECK_FALSE(all[i].differs());
      CHECK(all[i].gain() == 1.0);
      CHECK((all[i].least <= all[i].bytes && all[i].bytes <= all[i].most));
      if (i > 0 && all[i].shape == all[i - 1].shape)
        CHECK(all[i].least == all[i - 1].most + Bytes(1));
      else
        CHECK(all[i].least == Bytes(0));
    }
  }
}

TEST_CASE("neighbours that agree are one line of the file") {
  TunerChoice a{.kind = CollectiveKind::all_gather,
                .shape = {16, 2, 8, 1},
                .bytes = 1_KiB,
                .least = Bytes(0),
                .most = Bytes(1448),
                .usual = {},
                .taken = {Algorithm::ring, Protocol::ll128, 4, {}}};
  TunerChoice b = a, c = a;
  b.least = Bytes(1449), b.most = Bytes(2896);
  c.least = Bytes(2897), c.most = Bytes(9999);
  c.taken.channels = 8;
  const TunerChoice rows[] = {a, b, c};
  CHECK(tuner_file(rows, {"made by hand"}) ==
        "# made by hand\n# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,"
        "nRanks,numPipeOps,regBuff\nallgather,0,2896,ring,ll128,4,2,16,-1,-1\n"
        "allgather,2897,9999,ring,ll128,8,2,16,-1,-1\n");
}

}  // namespace stepcast::sim
