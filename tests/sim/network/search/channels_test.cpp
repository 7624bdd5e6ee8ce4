#include "sim/network/search/channels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "sim/network/search/graph.hpp"
#include "tests/sim/collective_rows.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::NcclGeneration;

namespace {

std::vector<std::int64_t> first_gpus(std::int64_t count) {
  std::vector<std::int64_t> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

double gb(BytesPerSecond b) { return b.value / 1e9; }

constexpr NcclGeneration generations[] = {NcclGeneration::volta, NcclGeneration::ampere,
                                          NcclGeneration::hopper};

topology::NodeSpec pcie_node() {
  topology::NodeSpec node = dgx(NcclGeneration::ampere);
  node.kind = topology::NodeKind::pcie;
  node.gpu.nvlink_links = 0;
  node.nvswitches = 0;
  node.nics = 2;
  return node;
}

/// What the channels take of every wire of the node, GB/s.
std::vector<double> used(const NodeWires& wires, const NodeChannels& channels) {
  std::vector<double> sums(wires.planned().size(), 0.0);
  const double speed = gb(channels.ring_speed) * static_cast<double>(channels.copies);
  const auto take = [&](const WireRoute& way) {
    for (std::size_t i = 0; i < way.count; ++i) sums[way.wires[i]] += speed;
  };
  for (const NodeChannel& ring : channels.rings) {
    for (std::size_t i = 0; i + 1 < ring.gpus.size(); ++i)
      take(*wires.between_gpus(ring.gpus[i], ring.gpus[i + 1], channels.reach));
    if (ring.nic_in < 0) {
      take(*wires.between_gpus(ring.gpus.back(), ring.gpus.front(), channels.reach));
      continue;
    }
    take(wires.from_nic(ring.nic_in, ring.gpus.front()));
    take(wires.to_nic(ring.out_gpu, ring.nic_out));
    if (ring.by_pxn()) take(*wires.between_gpus(ring.gpus.back(), ring.out_gpu, channels.reach));
  }
  return sums;
}

}  // namespace

TEST_CASE("the search finds the channels of the machines that are known") {
  struct Known {
    NcclGeneration architecture;
    std::int64_t nodes, channels;
    double speed;
    std::int64_t ctas;
  };
  // DGX-1V, DGX A100, DGX H100: one node, two, more (derived from search.cc).
  for (const Known& known : {Known{NcclGeneration::volta, 1, 6, 20, 12},
                             {NcclGeneration::ampere, 1, 12, 20, 24},
                             {NcclGeneration::hopper, 1, 12, 30, 24},
                             {NcclGeneration::volta, 4, 4, 12, 8},
                             {NcclGeneration::ampere, 2, 8, 24, 16},
                             {NcclGeneration::ampere, 16, 8, 24, 16},
                             {NcclGeneration::hopper, 2, 8, 48, 16},
                             {NcclGeneration::hopper, 256, 8, 48, 16}}) {
    const NcclMachine machine =
        nccl_machine(dgx(known.architecture), {8 * known.nodes, known.nodes, 8, 1});
    INFO(static_cast<int>(known.architecture) << ", " << known.nodes << " nodes");
    CHECK(machine.ring.channels == known.channels);
    CHECK(gb(machine.ring.in_node) == Approx(known.speed));
    CHECK(machine.ring.ctas == known.ctas);
    CHECK(machine.tree.channels == known.channels);
  }
}

TEST_CASE("DGX H100 nodes cross NICs in pairs, DGX A100 come and go by one NIC") {
  const NodeChannels h100 = search_channels(dgx(NcclGeneration::hopper), first_gpus(8), true);
  CHECK(h100.crosses_nics);
  for (std::size_t c = 0; c < 8; c += 2) {
    CHECK(h100.rings[c].nic_out == h100.rings[c + 1].nic_in);
    CHECK(h100.rings[c].nic_in == h100.rings[c + 1].nic_out);
  }
  const NodeChannels a100 = search_channels(dgx(NcclGeneration::ampere), first_gpus(8), true);
  CHECK_FALSE(a100.crosses_nics);
  for (const NodeChannel& ring : a100.rings) {
    CHECK(ring.nic_in == ring.nic_out);
    CHECK_FALSE(ring.by_pxn());
  }
}

TEST_CASE("where NVLink has room the last GPU sends through the one beside the NIC") {
  // Four members of a DGX H100: order and way out as in the graph dump of NVIDIA/nccl issue 1313
  // (an eight-GPU node with two of its NICs, typeinter PXN, 24 GB/s after duplication).
  const NodeChannels four = search_channels(dgx(NcclGeneration::hopper), first_gpus(4), true);
  CHECK(four.rings.front().gpus == std::vector<std::int64_t>{0, 3, 2, 1});
  CHECK(four.rings.front().by_pxn());
  CHECK(four.copies == 2);
  CHECK(gb(four.ring_speed) == Approx(24));
}

TEST_CASE("every ring and chain visits every member once, no wire carries more than is planned") {
  std::mt19937 random(20261121);
  for (const auto& node : {dgx(NcclGeneration::volta), dgx(NcclGeneration::ampere),
                           dgx(NcclGeneration::hopper), pcie_node()})
    for (const bool several : {false, true})
      for (int round = 0; round < 40; ++round) {
        std::vector<std::int64_t> members = first_gpus(8);
        std::shuffle(members.begin(), members.end(), random);
        members.resize((several ? 1 : 2) + random() % (several ? 8 : 7));
        members = sorted(members);
        const NodeChannels found = search_channels(node, members, several);
        const NodeWires wires(node);
        REQUIRE_FALSE(found.rings.empty());
        REQUIRE(found.chains.size() == found.rings.size());
        for (const auto* set : {&found.rings, &found.chains})
          for (const NodeChannel& channel : *set) CHECK(sorted(channel.gpus) == members);
        const std::vector<double> sums = used(wires, found);
        for (std::size_t w = 0; w < sums.size(); ++w)
          if (sums[w] > wires.planned()[w] * 1.002) FAIL(node.name << ", wire " << w);
      }
}

TEST_CASE("rings of a cube mesh use each NVLink once each way") {
  const topology::NodeSpec node = dgx(NcclGeneration::volta);
  const NodeChannels found = search_channels(node, first_gpus(8), false);
  const NodeWires wires(node);
  const std::vector<double> sums = used(wires, found);
  for (std::int64_t i = 0; i < 8; ++i)
    for (std::int64_t j = 0; j < 8; ++j)
      if (const auto links = node.nvlinks[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
          links > 0)
        CHECK(sums[wires.between_gpus(i, j, HopReach::nvlink)->wires[0]] ==
              Approx(20.0 * static_cast<double>(links)));
}

TEST_CASE("a ring over nodes visits every rank once and stays on its rails") {
  const ChannelPlanner planner(dgx(NcclGeneration::hopper));
  std::vector<std::int64_t> ranks(128);
  std::iota(ranks.begin(), ranks.end(), 0);
  const ChannelPlan plan = planner.plan(ranks);
  CHECK(plan.num_channels() == 8);
  for (std::size_t c = 0; c < plan.num_channels(); ++c) {
    CHECK(sorted(plan.ring(c)) == ranks);
    for (std::size_t at = 0; at < 16; ++at)
      CHECK(plan.ring_on(at, c).nic_out == plan.ring_on((at + 1) % 16, c).nic_in);
  }
}

TEST_CASE("a tree of ranks hangs together") {
  const ChannelPlanner planner(dgx(NcclGeneration::ampere));
  std::vector<std::int64_t> ranks(72);
  std::iota(ranks.begin(), ranks.end(), 0);
  const ChannelPlan plan = planner.plan(ranks);
  for (std::size_t c = 0; c < plan.num_channels(); ++c)
    for (const int tree : {0, 1}) {
      std::int64_t roots = 0, edges = 0;
      for (const std::int64_t rank : ranks) {
        const ChannelPlan::RankPlace place = plan.tree_rank(c, tree, rank);
        roots += place.parent < 0 ? 1 : 0;
        for (const std::int64_t child : place.children) {
          ++edges;
          CHECK(plan.tree_rank(c, tree, child).parent == rank);
        }
      }
      CHECK(roots == 1);
      CHECK(edges == 71);
    }
}

TEST_CASE("moving a group to other nodes moves its channels along") {
  const ChannelPlanner planner(dgx(NcclGeneration::volta));
  const auto on_nodes = [&](std::vector<std::int64_t> nodes) {
    std::vector<std::int64_t> ranks;
    for (const std::int64_t node : nodes)
      for (std::int64_t g = 0; g < 8; ++g) ranks.push_back(8 * node + g);
    return planner.plan(ranks);
  };
  const ChannelPlan low = on_nodes({0, 1, 2}), high = on_nodes({7, 20, 31});
  const std::map<std::int64_t, std::int64_t> moved{{0, 7}, {1, 20}, {2, 31}};
  for (std::size_t c = 0; c < low.num_channels(); ++c) {
    std::vector<std::int64_t> expected;
    for (const std::int64_t gpu : low.ring(c)) expected.push_back(8 * moved.at(gpu / 8) + gpu % 8);
    CHECK(high.ring(c) == expected);
  }
}

TEST_CASE("faster links never leave a ring slower") {
  for (const NcclGeneration architecture : generations) {
    topology::NodeSpec slow = dgx(architecture), fast = slow;
    fast.gpu.nvlink = fast.gpu.nvlink * 2;
    fast.nvlink_per_link = fast.nvlink_per_link * 2;
    fast.nic = fast.nic * 2;
    fast.pcie = fast.pcie * 2;
    for (const bool several : {false, true}) {
      const auto bus = [&](const topology::NodeSpec& node) {
        const NodeChannels found = search_channels(node, first_gpus(8), several);
        return gb(found.ring_speed) * static_cast<double>(found.count());
      };
      CHECK(bus(fast) >= bus(slow));
    }
  }
}
