// Laws that hold for any cluster, group and NCCL version, over seeded random ones. Where NCCL may
// choose, the algorithm and the protocol are pinned: another choice is another machine.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "collective_rows.hpp"
#include "sim/network/nccl/network.hpp"
#include "tests/session.hpp"
#include "topology/router.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::NcclGeneration;
using workloads::CollectiveKind;

namespace {

constexpr auto AR = CollectiveKind::all_reduce;
constexpr auto AG = CollectiveKind::all_gather;
constexpr auto RS = CollectiveKind::reduce_scatter;
const std::string tuning_folder = STEPCAST_SOURCE_DIR "/scenarios/nccl";

const NcclTuning& tuning_of(const std::string& version) { return catalogue().nccl(version).tuning; }

/// A random machine, version, collective and group, with algorithm and protocol pinned.
struct Draw {
  topology::NodeSpec node;
  std::string version;
  NcclOverrides pinned;
  CollectiveKind kind{};
  GroupShape shape;
  Bytes bytes{};

  CollectiveTime time() const {
    return CollectiveTimes(node, catalogue().nccl(version), {}, pinned).time_of(kind, bytes, shape);
  }
  const NcclTuning& tuning() const { return tuning_of(version); }
  std::string text() const {
    return node.name + " x " + std::to_string(shape.nodes) + ", " + std::to_string(shape.ranks) +
           " ranks, NCCL " + version + ", kind " + std::to_string(static_cast<int>(kind)) + ", " +
           std::string(name_of(*pinned.algorithm)) + " " + std::string(name_of(*pinned.protocol)) +
           ", " + std::to_string(bytes.value) + " bytes";
  }
};

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  std::int64_t any(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  Bytes bytes() {
    return Bytes(static_cast<std::int64_t>(
        std::pow(2.0, 4.0 + 30.0 * static_cast<double>(any(0, 1 << 20)) / (1 << 20))));
  }
  template <class T>
  T one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(any(0, static_cast<std::int64_t>(all.size()) - 1))];
  }

  /// Drawn again until NCCL runs what is pinned.
  Draw draw() {
    for (int attempt = 0; attempt < 10'000; ++attempt) {
      Draw d;
      const auto [gpu, name] = one_of(std::vector<std::pair<NcclGeneration, const char*>>{
          {NcclGeneration::volta, "dgx-1v"},
          {NcclGeneration::ampere, "dgx-a100"},
          {NcclGeneration::hopper, "dgx-h100"}});
      d.node = dgx(gpu);
      d.node.name = name;
      static const std::vector<std::string> versions = nccl_versions(tuning_folder);
      d.version = one_of(versions);
      d.kind = one_of(std::vector{AR, AG, RS, CollectiveKind::broadcast, CollectiveKind::reduce});
      const std::int64_t per_node = std::int64_t{1} << any(0, 3);
      const std::int64_t nodes = any(0, 3) == 0 ? 1 : any(2, 300);
      if (nodes * per_node < 2) continue;
      d.shape = {nodes * per_node, nodes, per_node, 1};
      d.bytes = bytes();
      d.pinned.algorithm = static_cast<Algorithm>(any(0, num_algorithms - 1));
      d.pinned.protocol = static_cast<Protocol>(any(0, 2));
      if (runs(d)) return d;
    }
    throw BrokenPromise("no pinned choice runs");
  }

  /// What is pinned is what runs: NCCL ignores what does not fit.
  static bool runs(const Draw& d) {
    try {
      const CollectiveTime t = d.time();
      return t.algorithm == *d.pinned.algorithm && t.protocol == *d.pinned.protocol;
    } catch (const InputError&) {  // newer versions refuse it
      return false;
    }
  }

 private:
  std::mt19937_64 random_;
};

constexpr int cases = 1500;

/// A later time is no shorter, but for the picosecond that a sum of roundings may miss.
bool no_faster(const CollectiveTime& later, const CollectiveTime& earlier) {
  return later.duration + 10_ps >= earlier.duration;
}

GroupShape whole_nodes(std::int64_t nodes) { return {8 * nodes, nodes, 8, 1}; }

}  // namespace

TEST_CASE("law: more bytes are never faster, pinned or not") {
  Draws draws(1);
  for (int i = 0; i < cases; ++i) {
    Draw d = draws.draw();
    if (i % 2 == 1) d.pinned = {};
    const CollectiveTimes times(d.node, catalogue().nccl(d.version), {}, d.pinned);
    const Bytes more(d.bytes.value + draws.any(1, 1 + d.bytes.value / (i % 3 == 0 ? 1 : 100)));
    INFO(d.node.name << " NCCL " << d.version << " " << d.shape.nodes << " x "
                     << d.shape.ranks_per_node << " kind " << static_cast<int>(d.kind) << " "
                     << d.bytes.value << " to " << more.value);
    CHECK(no_faster(times.time_of(d.kind, more, d.shape), times.time_of(d.kind, d.bytes, d.shape)));
  }
}

TEST_CASE("law: more nodes are never faster with the same algorithm") {
  Draws draws(2);
  int compared = 0;
  for (int i = 0; i < cases; ++i) {
    const Draw d = draws.draw();
    // Two nodes are no small case of many: both NICs of a pair swap what trees pass on.
    if (d.shape.nodes < 3) continue;
    Draw more = d;
    more.shape.nodes += draws.any(1, d.shape.nodes);
    more.shape.ranks = more.shape.nodes * more.shape.ranks_per_node;
    if (!Draws::runs(more)) continue;
    ++compared;
    INFO(d.text() << "; then " << more.shape.nodes << " nodes");
    CHECK(no_faster(more.time(), d.time()));
  }
  CHECK(compared > cases / 3);
}

TEST_CASE("law: no slower link or longer latency speeds anything up") {
  Draws draws(3);
  for (int i = 0; i < cases; ++i) {
    const Draw d = draws.draw();
    Draw slow = d;
    const double factor = 1.0 + 0.01 * static_cast<double>(draws.any(1, 200));
    const char* what = "NIC";
    switch (i % 5) {
      case 0:
        slow.node.nic = slow.node.nic * (1 / factor);
        break;
      case 1:
        slow.node.nvlink_per_link = slow.node.nvlink_per_link * (1 / factor);
        slow.node.gpu.nvlink = slow.node.gpu.nvlink * (1 / factor);
        what = "NVLink";
        break;
      case 2:
        slow.node.nic_latency = to_duration(seconds(slow.node.nic_latency) * factor);
        what = "NIC latency";
        break;
      case 3:
        slow.node.pcie = slow.node.pcie * (1 / factor);
        what = "PCIe";
        break;
      case 4:
        slow.node.nvlink_latency = to_duration(seconds(slow.node.nvlink_latency) * factor);
        what = "NVLink latency";
        break;
    }
    if (!Draws::runs(slow)) continue;
    // Wires that make NCCL's search find other channels make another machine.
    if (nccl_machine(slow.node, d.shape).ring.ctas != nccl_machine(d.node, d.shape).ring.ctas)
      continue;
    INFO(d.text() << "; " << what << " slower by " << factor);
    CHECK(no_faster(slow.time(), d.time()));
  }
}

/// Without what messages cost beside their bytes.
Duration bytes_of(const Draw& d) {
  const CollectiveTime time = d.time();
  return time.transfer - time.messages;
}

TEST_CASE("law: doubling all bandwidths halves the bandwidth part") {
  Draws draws(4);
  for (int i = 0; i < cases; ++i) {
    const Draw d = draws.draw();
    Draw twice = d;
    topology::NodeSpec& node = twice.node;
    for (BytesPerSecond* bandwidth : {&node.nic, &node.nvlink_per_link, &node.gpu.nvlink,
                                      &node.pcie, &node.socket, &node.gpu.memory_bandwidth})
      *bandwidth = *bandwidth * 2.0;
    if (!Draws::runs(twice)) continue;
    INFO(d.text());
    CHECK(seconds(bytes_of(twice)) == Approx(seconds(bytes_of(d)) / 2).epsilon(1e-3).margin(1e-11));
  }
}

TEST_CASE("law: an AllGather over 8 to 4,096 GPUs is monotone in ranks, its hops a ring's") {
  for (const std::string& version : nccl_versions(tuning_folder))
    for (const Bytes bytes : {64_KiB, 4_MiB, 385_MiB}) {
      NcclOverrides ring;
      ring.algorithm = Algorithm::ring;
      ring.protocol = Protocol::simple;
      const CollectiveTimes times(dgx(NcclGeneration::hopper), catalogue().nccl(version), {}, ring);
      CollectiveTime last;
      for (std::int64_t nodes = 1; nodes <= 512; nodes *= 2) {
        const CollectiveTime t = times.time_of(AG, bytes, whole_nodes(nodes));
        INFO("NCCL " << version << ", " << bytes.value << " bytes, " << nodes << " nodes");
        CHECK(t.duration > last.duration);
        CHECK(t.hops == 8 * nodes - 1);
        last = t;
      }
    }
}

TEST_CASE("law: a ring's latency is linear in its steps") {
  // Same bytes per step and so the same slots: the bytes grow with the ranks. Second differences
  // over equal steps of nodes are none.
  const CollectiveTimes times = [] {
    NcclOverrides ring;
    ring.algorithm = Algorithm::ring;
    ring.protocol = Protocol::ll;
    return CollectiveTimes(dgx(NcclGeneration::hopper), catalogue().nccl("2.20"), {}, ring);
  }();
  const auto latency = [&](std::int64_t nodes) {
    return seconds(times.time_of(AG, Bytes(64 * nodes), whole_nodes(nodes)).latency);
  };
  const double slope = (latency(512) - latency(4)) / 508;
  CHECK(slope > 1e-6);  // of 8 ranks, one of them over the network
  for (std::int64_t nodes = 4; nodes <= 512; nodes *= 2)
    CHECK(latency(nodes) ==
          Approx(latency(4) + slope * static_cast<double>(nodes - 4)).epsilon(0.01));
}

TEST_CASE("law: PAT's latency is logarithmic, Ring's is not") {
  const auto latency = [&](Algorithm algorithm, std::int64_t nodes) {
    NcclOverrides pinned;
    pinned.algorithm = algorithm;
    pinned.protocol = Protocol::simple;
    const CollectiveTimes times(dgx(NcclGeneration::hopper), catalogue().nccl("2.24"), {}, pinned);
    const CollectiveTime t = times.time_of(AG, 64_KiB, {nodes, nodes, 1, 1});
    REQUIRE(t.algorithm == algorithm);
    return seconds(t.latency);
  };
  // Every doubling of the nodes adds one step as long as the others.
  const double step = (latency(Algorithm::pat, 512) - latency(Algorithm::pat, 16)) / 5;
  CHECK(step > 0.0);
  for (std::int64_t nodes = 16; nodes < 512; nodes *= 2)
    CHECK(latency(Algorithm::pat, 2 * nodes) - latency(Algorithm::pat, nodes) ==
          Approx(step).epsilon(0.1));
  CHECK(latency(Algorithm::ring, 512) - latency(Algorithm::ring, 256) >
        10 * (latency(Algorithm::ring, 32) - latency(Algorithm::ring, 16)));
  CHECK(latency(Algorithm::pat, 512) < latency(Algorithm::ring, 512));
}

TEST_CASE("law: relabelling nodes changes neither time nor what the links of a node carry") {
  topology::FabricSpec fabric{.name = "test",
                              .kind = topology::FabricKind::rail_optimized,
                              .ports = 64,
                              .tiers = 0,
                              .oversubscription = 1.0,
                              .link = {},
                              .switch_latency = 130_ns,
                              .cable_latency = 100_ns};
  std::mt19937_64 random(6);
  for (const auto routing : {topology::Routing::destination, topology::Routing::spray})
    for (const NcclGeneration gpu :
         {NcclGeneration::volta, NcclGeneration::ampere, NcclGeneration::hopper}) {
      fabric.routing = routing;
      const auto cluster = topology::Cluster::build(dgx(gpu), 64, fabric);
      const topology::StaticRouter router(cluster);
      const NcclNetwork network(cluster, router, catalogue().nccl("2.20"));
      for (int i = 0; i < 10; ++i) {
        std::vector<std::int64_t> nodes(32);  // of one unit: no uplink
        std::iota(nodes.begin(), nodes.end(), 0);
        std::shuffle(nodes.begin(), nodes.end(), random);
        const auto busiest = [&](const std::vector<std::int64_t>& on) {
          std::vector<std::int64_t> ranks;
          for (const std::int64_t node : on)
            for (std::int64_t g = 0; g < 8; ++g) ranks.push_back(8 * node + g);
          const GroupShape shape = shape_of(cluster, ranks);
          const CollectiveTime t =
              network.time_of(plain_collective(AR, 64_MiB), {shape.ranks, shape.nodes, 8, 1});
          double most = 0.0, sum = 0.0;
          for (const LinkLoad& load : network.loads_of({AR, t.algorithm}, ranks)) {
            most = std::max(most, load.bytes_per_byte);
            sum += load.bytes_per_byte;
          }
          return std::tuple(t.duration, most, sum);
        };
        const auto n = static_cast<std::size_t>(2 + random() % 20);
        nodes.resize(n);
        std::vector<std::int64_t> plain(n);
        std::iota(plain.begin(), plain.end(), 0);
        CHECK(busiest(nodes) == busiest(plain));
      }
    }
}
