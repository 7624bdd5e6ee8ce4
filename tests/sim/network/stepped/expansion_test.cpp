#include "sim/network/stepped/expansion.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/sim/stepped_machine.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using workloads::CollectiveKind;

namespace {

constexpr auto AG = CollectiveKind::all_gather;
constexpr auto AR = CollectiveKind::all_reduce;

/// Bytes that leave all NICs of a cluster, and the most that leave one.
struct NicBytes {
  double all = 0.0, most = 0.0;

  NicBytes(const SteppedMachine& machine, const SteppedTerms& terms) {
    const SteppedLayout layout(machine.cluster, machine.router, machine.ranks);
    const auto bytes = expand(layout, terms).bytes_on_links(machine.cluster.links().size());
    for (std::int64_t node = 0; node < machine.cluster.num_nodes(); ++node)
      for (std::int64_t nic = 0; nic < machine.cluster.node().nics; ++nic) {
        const double up = bytes[machine.cluster.nic_up(node, nic)];
        all += up;
        most = std::max(most, up);
      }
  }
};

SteppedTerms terms(CollectiveKind kind, Algorithm algorithm, Bytes bytes) {
  return {.kind = kind,
          .algorithm = algorithm,
          .protocol = Protocol::simple,
          .bytes = bytes,
          .channels = 16};
}

}  // namespace

TEST_CASE("a ring sends (n-1)/n of the bytes out of every node, AllReduce twice that") {
  const SteppedMachine machine("dgx-h100", 4);
  const double s = 32.0 * (1 << 20);
  const NicBytes gather(machine, terms(AG, Algorithm::ring, 32_MiB));
  CHECK(gather.all == Approx(4 * s * 31 / 32));
  CHECK(gather.most == Approx(s * 31 / 32 / 8));
  CHECK(NicBytes(machine, terms(AR, Algorithm::ring, 32_MiB)).all == Approx(2 * gather.all));
  // Two and a half loops take three: the same bytes in more steps.
  SteppedTerms loops = terms(AG, Algorithm::ring, 32_MiB);
  loops.hops = 31 * 5 / 2;
  CHECK(NicBytes(machine, loops).all == Approx(gather.all));
  const SteppedLayout layout(machine.cluster, machine.router, machine.ranks);
  CHECK(expand(layout, loops).num_steps() == 3 * 31);
}

TEST_CASE("a tree sends the bytes over each of its edges up and down") {
  for (const std::int64_t nodes : {2, 3, 4, 7, 8}) {
    const SteppedMachine machine("dgx-a100", nodes);
    const NicBytes tree(machine, terms(AR, Algorithm::tree, 32_MiB));
    const double s = 32.0 * (1 << 20);
    INFO(nodes);
    CHECK(tree.all == Approx(2 * static_cast<double>(nodes - 1) * s));
    // A node is above others in one tree at most if their number is even: 2 S through its NICs.
    if (nodes % 2 == 0) CHECK(tree.most <= 2 * s / 8 * (1 + 1e-9));
    CHECK(NicBytes(machine, terms(AR, Algorithm::nvls_tree, 32_MiB)).all == Approx(tree.all));
  }
}

TEST_CASE("AlltoAll sends what other nodes need, evenly over the NICs") {
  const SteppedMachine machine("dgx-h100", 4);
  const NicBytes all(machine, terms(CollectiveKind::all_to_all, Algorithm::p2p, 32_MiB));
  const double s = 32.0 * (1 << 20);
  CHECK(all.all == Approx(32 * s * 24 / 32));
  CHECK(all.most == Approx(all.all / 32));
}

TEST_CASE("PAT doubles what it sends: log2 n steps, n-1 chunks") {
  SteppedMachine machine("dgx-h100", 16);
  machine.ranks.clear();
  for (std::int64_t node = 0; node < 16; ++node) machine.ranks.push_back(8 * node);
  const SteppedLayout layout(machine.cluster, machine.router, machine.ranks);
  const auto graph = expand(layout, terms(AG, Algorithm::pat, 16_MiB));
  CHECK(graph.num_steps() == 4);
  CHECK(graph.size() == 16 * 4);
  CHECK(NicBytes(machine, terms(AG, Algorithm::pat, 16_MiB)).most == Approx(15.0 * (1 << 20)));
}

TEST_CASE("what has no stepped form, or too large a one, is refused with a hint") {
  const SteppedMachine machine("dgx-h100", 2);
  const SteppedLayout layout(machine.cluster, machine.router, machine.ranks);
  for (const Algorithm algorithm : {Algorithm::nvls, Algorithm::collnet_chain})
    CHECK_THROWS_WITH(expand(layout, terms(AR, algorithm, 1_MiB)),
                      Catch::Contains("has no stepped form"));
  SteppedTerms loops = terms(AG, Algorithm::ring, 1_GiB);
  loops.hops = 15 * 4'000;
  CHECK_THROWS_WITH(expand(layout, loops), Catch::Contains("4 million transfers"));
  CHECK_NOTHROW(TransferGraph().make_room(4'000'000));
  CHECK_THROWS_WITH(TransferGraph().make_room(4'000'001), Catch::Contains("4 million transfers"));
}
