#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "collective_rows.hpp"
#include "engine/check.hpp"
#include "sim/nccl_choice.hpp"
#include "sim/nccl_time.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::Architecture;
using workloads::CollectiveKind;

namespace {

const std::string directory = STEPCAST_SOURCE_DIR "/scenarios/nccl";

NcclTuning tuning(const std::string& version) { return nccl_tuning_of(directory, version); }

GroupShape whole_nodes(std::int64_t nodes) { return {8 * nodes, nodes, 8, 1}; }

NcclMachine machine(Architecture architecture, GroupShape shape) {
  return nccl_machine(dgx(architecture), shape);
}

/// NCCL's own figures for one algorithm and protocol.
NcclOption option(const std::string& version, const NcclMachine& on, CollectiveKind kind,
                  Bytes bytes, Algorithm algorithm, Protocol protocol) {
  for (const NcclOption& o : nccl_options(tuning(version), on, kind, bytes))
    if (o.algorithm == algorithm && o.protocol == protocol) return o;
  throw std::runtime_error("not offered");
}

bool offers(const std::string& version, const NcclMachine& on, CollectiveKind kind,
            Algorithm algorithm) {
  for (const NcclOption& o : nccl_options(tuning(version), on, kind, 1_MiB))
    if (o.algorithm == algorithm) return true;
  return false;
}

double us(Duration d) { return seconds(d) * 1e6; }
double gb(BytesPerSecond b) { return b.value / 1e9; }

/// Latency of an option: its estimate less the bytes over the bandwidth.
double latency_us(const NcclOption& o, Bytes bytes) {
  return us(o.estimate) - static_cast<double>(bytes.value) / o.bandwidth.value * 1e6;
}

std::string copy_with(const std::string& from, const std::string& to) {
  std::ifstream in(directory + "/2.20.toml");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.replace(text.find(from), from.size(), to);
  const std::string path = std::string(STEPCAST_BINARY_DIR) + "/nccl_broken.toml";
  std::ofstream(path) << text;
  return path;
}

constexpr auto AR = CollectiveKind::all_reduce;
constexpr auto AG = CollectiveKind::all_gather;
constexpr auto RS = CollectiveKind::reduce_scatter;

}  // namespace

TEST_CASE("a version is served by the newest key that is not newer") {
  CHECK(tuning("2.18.1").version == "2.18.1");
  CHECK(tuning("2.18.5").version == "2.18.1");
  CHECK(tuning("2.18").version == "2.18.6");  // without a patch: the last of its line
  CHECK(tuning("2.20").version == "2.20");
  CHECK(tuning("2.20.5").version == "2.20");
  CHECK(tuning("2.22.3").version == "2.21");
  CHECK(tuning("2.27.7").version == "2.24");
  CHECK(tuning("2.28.3").version == "2.28.3");
  CHECK(tuning("2.28").version == "2.28.9");
  CHECK(tuning("2.30.7").version == "2.28.9");
}

TEST_CASE("a version that is too old or no version is the user's mistake") {
  CHECK_THROWS_AS(tuning("2.17.1"), InputError);
  CHECK_THROWS_AS(tuning("newest"), InputError);
  CHECK_THROWS_AS(tuning("2"), InputError);
  CHECK_THROWS_AS(nccl_tuning_of("/nowhere", "2.20"), InputError);
}

TEST_CASE("a tuning file with an unknown, missing or wrong key names its line") {
  CHECK_THROWS_WITH(read_nccl_tuning(copy_with("ring_ll = ", "ring_lll = ")),
                    Catch::Contains("nccl_broken.toml:") && Catch::Contains("ring_ll"));
  CHECK_THROWS_WITH(read_nccl_tuning(copy_with("pat = 0\n", "")), Catch::Contains("pat"));
  CHECK_THROWS_WITH(read_nccl_tuning(copy_with("pat = 0\n", "pat = 0\nsharp = 1\n")),
                    Catch::Contains("sharp"));
  CHECK_THROWS_WITH(read_nccl_tuning(copy_with("[2.7, 4, 14]", "[2.7, 4]")),
                    Catch::Contains("three numbers"));
  CHECK_THROWS_WITH(read_nccl_tuning(copy_with("\"5/6\"", "\"6/7\"")), Catch::Contains("6/7"));
}

TEST_CASE("channels are those of the machines' own searches") {
  // DGX-1V 6 x 20, DGX A100 12 x 20, DGX H100 12 x 30; over nodes A100 8 x 24, H100 8 x 48.
  const auto v100 = machine(Architecture::volta, whole_nodes(1));
  CHECK(v100.ring.channels == 6);
  CHECK(gb(v100.ring.bus_in_node()) == Approx(120));
  CHECK(v100.ring.ctas == 12);
  const auto a100 = machine(Architecture::ampere, whole_nodes(1));
  CHECK(gb(a100.ring.bus_in_node()) == Approx(240));
  CHECK(a100.ring.ctas == 24);
  const auto h100 = machine(Architecture::hopper, whole_nodes(1));
  CHECK(gb(h100.ring.bus_in_node()) == Approx(360));
  CHECK(h100.ring.ctas == 24);
  CHECK(h100.nvls->channels == 8);
  CHECK(gb(h100.nvls->in_node) == Approx(40));
  const auto a100s = machine(Architecture::ampere, whole_nodes(4));
  CHECK(gb(a100s.ring.bus_between_nodes()) == Approx(192));
  CHECK(a100s.ring.ctas == 16);
  const auto h100s = machine(Architecture::hopper, whole_nodes(4));
  CHECK(gb(h100s.ring.bus_between_nodes()) == Approx(384));
  CHECK(h100s.ring.ctas == 16);
  // DGX-1 has 4 NICs for 8 GPUs: 4 x 12.
  CHECK(gb(machine(Architecture::volta, whole_nodes(4)).ring.bus_between_nodes()) == Approx(48));
}

TEST_CASE("a group with fewer ranks per node has fewer NICs") {
  for (const std::int64_t p : {1, 2, 4, 8}) {
    const auto some = machine(Architecture::hopper, {p * 16, 16, p, 1});
    CHECK(gb(some.nic_bandwidth) == Approx(50.0 * static_cast<double>(p)));
    CHECK(gb(some.ring.bus_between_nodes()) == Approx(48.0 * static_cast<double>(p)));
  }
  CHECK(gb(machine(Architecture::volta, {16, 16, 1, 1}).nic_bandwidth) == Approx(12.5));
}

TEST_CASE("groups inside DGX-1V have the rings their links make") {
  // Quad 0-3: four links from each to the others. GPUs 0 and 1: one link.
  CHECK(gb(machine(Architecture::volta, {4, 1, 4, 1}).ring.bus_in_node()) == Approx(80));
  CHECK(gb(machine(Architecture::volta, {2, 1, 2, 1}).ring.bus_in_node()) == Approx(20));
}

TEST_CASE("the asymptotes of NCCL's model are those of the graphs") {
  // busbw = algbw x 2(n-1)/n at 16 GiB.
  const auto bus = [](const std::string& version, const NcclMachine& on, Algorithm algorithm) {
    const NcclOption o = option(version, on, AR, 16_GiB, algorithm, Protocol::simple);
    return gb(o.bandwidth) * bus_factor(AR, on.shape.ranks);
  };
  CHECK(bus("2.28.9", machine(Architecture::volta, whole_nodes(1)), Algorithm::ring) ==
        Approx(120));
  CHECK(bus("2.28.9", machine(Architecture::ampere, whole_nodes(1)), Algorithm::ring) ==
        Approx(240));
  CHECK(bus("2.28.9", machine(Architecture::hopper, whole_nodes(1)), Algorithm::ring) ==
        Approx(360));
  CHECK(bus("2.28.9", machine(Architecture::hopper, whole_nodes(1)), Algorithm::nvls) ==
        Approx(476));
  CHECK(bus("2.28.9", machine(Architecture::ampere, whole_nodes(4)), Algorithm::ring) ==
        Approx(192));
  CHECK(bus("2.28.9", machine(Architecture::hopper, whole_nodes(4)), Algorithm::ring) ==
        Approx(384));
  CHECK(bus("2.28.9", machine(Architecture::hopper, whole_nodes(2)), Algorithm::nvls_tree) ==
        Approx(462).epsilon(0.001));
}

TEST_CASE("Tree Simple costs 28 us a hop, 4/6/14 in 2.18.6 and 4/4/14 with a base since 2.23") {
  const auto on = machine(Architecture::hopper, whole_nodes(4));
  // 2 ((8 - 1) x NVLink + 2 levels x NET) + base
  const auto latency = [&](const std::string& version) {
    return latency_us(option(version, on, AR, 1_GiB, Algorithm::tree, Protocol::simple), 1_GiB);
  };
  CHECK(latency("2.18.1") == Approx(2 * (7 * 28 + 2 * 28)));
  CHECK(latency("2.18.6") == Approx(2 * (7 * 4 + 2 * 14)));
  CHECK(latency("2.19") == Approx(2 * (7 * 28 + 2 * 28)));
  CHECK(latency("2.22") == Approx(2 * (7 * 28 + 2 * 28)));
  CHECK(latency("2.23") == Approx(2 * (7 * 4 + 2 * 14) + 8.4));
}

TEST_CASE("Ring LL reaches a quarter of the bus until 2.20 and half of it since 2.21") {
  const auto one = machine(Architecture::ampere, whole_nodes(1));
  const auto ll = [&](const std::string& version, CollectiveKind kind) {
    return gb(option(version, one, kind, 64_KiB, Algorithm::ring, Protocol::ll).bandwidth) *
           bus_factor(kind, 8);
  };
  CHECK(ll("2.20", AR) == Approx(60));
  CHECK(ll("2.20", AG) == Approx(80).epsilon(1e-4));  // a third inside one node
  CHECK(ll("2.21", AR) == Approx(87.7));              // half of 240, but at most 87.7
  CHECK(ll("2.21", AG) == Approx(87.7));
}

TEST_CASE("Hopper's LL ceiling rises from Ampere's in 2.21") {
  const auto one = machine(Architecture::hopper, whole_nodes(1));
  const auto ll = [&](const std::string& version) {
    return gb(option(version, one, AR, 64_KiB, Algorithm::ring, Protocol::ll).bandwidth) *
           bus_factor(AR, 8);
  };
  CHECK(ll("2.20") == Approx(87.7));
  CHECK(ll("2.21") == Approx(141));
}

TEST_CASE("Ring LL128 with one rank a node is discounted until 2.22") {
  const auto single = machine(Architecture::ampere, {16, 16, 1, 1});
  const auto share = [&](const std::string& version) {
    return gb(option(version, single, AG, 1_MiB, Algorithm::ring, Protocol::ll128).bandwidth) * 15 /
           16;
  };
  CHECK(share("2.22") == Approx(0.7 * 24));
  CHECK(share("2.23") == Approx(20.0));  // 0.92 x 24, but at most 20 a channel
}

TEST_CASE("Ring AllReduce counts 2N network hops until 2.22 and 2(N-1) since 2.23") {
  const auto on = machine(Architecture::hopper, whole_nodes(4));
  const auto latency = [&](const std::string& version) {
    return latency_us(option(version, on, AR, 1_KiB, Algorithm::ring, Protocol::ll128), 1_KiB);
  };
  // 62 steps of 1.9 us in the node or 4.0 us between nodes, base 14.
  CHECK(latency("2.22") == Approx(14 + 54 * 1.9 + 8 * 4.0));
  CHECK(latency("2.23") == Approx(14 + 56 * 1.9 + 6 * 4.0));
}

TEST_CASE("NVLS latency is a base of 23 us in 2.18, 23 us a hop in 2.19 and 25 us since 2.21") {
  const auto one = machine(Architecture::hopper, whole_nodes(1));
  const auto latency = [&](const std::string& version) {
    return latency_us(option(version, one, AR, 1_GiB, Algorithm::nvls, Protocol::simple), 1_GiB);
  };
  CHECK(latency("2.18.1") == Approx(23));
  CHECK(tuning("2.18").latency[static_cast<std::size_t>(Algorithm::nvls)].base[2] == 23);
  CHECK(latency("2.20") == Approx(23));
  CHECK(latency("2.21") == Approx(25));
}

TEST_CASE("NVLSTree's network latency is 19 us in 2.18, 14 until 2.28.3 and 20.9 since 2.28.9") {
  const auto on = machine(Architecture::hopper, whole_nodes(4));
  const auto latency = [&](const std::string& version) {
    return latency_us(option(version, on, AR, 1_GiB, Algorithm::nvls_tree, Protocol::simple),
                      1_GiB);
  };
  CHECK(latency("2.18") == Approx(23 + 4 * 19));
  CHECK(latency("2.19") == Approx(23 + 4 * 14));
  CHECK(latency("2.28.3") == Approx(25 + 4 * 14));
  CHECK(latency("2.28.9") == Approx(25 + 4 * 20.9));
}

TEST_CASE(
    "NVLS turns bus into algorithm bandwidth by 3/4, 5/6, and by the ring's ratio since 2.28") {
  const auto one = machine(Architecture::hopper, whole_nodes(1));
  const auto bandwidth = [&](const std::string& version) {
    return gb(option(version, one, AR, 1_GiB, Algorithm::nvls, Protocol::simple).bandwidth);
  };
  CHECK(bandwidth("2.18.1") == Approx(320 * 0.75));
  CHECK(bandwidth("2.18.6") == Approx(320 * 5 / 6.0));
  CHECK(bandwidth("2.27") == Approx(320 * 5 / 6.0));
  CHECK(bandwidth("2.28.3") == Approx(320 * 0.85 * 7 / 8 * 2 * 8 / 14.0));
}

TEST_CASE("NVLSTree's ratio is 0.7 N/2(N-1) in 2.18, 5/6 of half the network, capped since 2.28") {
  const auto on = machine(Architecture::hopper, whole_nodes(4));
  const auto bandwidth = [&](const std::string& version) {
    return gb(option(version, on, AR, 1_GiB, Algorithm::nvls_tree, Protocol::simple).bandwidth);
  };
  CHECK(bandwidth("2.18") == Approx(8 * 40 * 0.7 * 4 / 6));
  CHECK(bandwidth("2.20") == Approx(8 * 24 * 5 / 6.0));
  CHECK(bandwidth("2.28.9") == Approx(8 * 45.5 * 32 / 62.0));
}

TEST_CASE("AllGather is served by Ring alone in 2.18, by NVLS since 2.19, by PAT since 2.23") {
  const auto one = machine(Architecture::hopper, whole_nodes(1));
  const auto strided = machine(Architecture::hopper, {16, 16, 1, 1});
  const auto many = machine(Architecture::hopper, whole_nodes(16));
  for (const CollectiveKind kind : {AG, RS}) {
    CHECK_FALSE(offers("2.18", one, kind, Algorithm::nvls));
    CHECK(offers("2.19", one, kind, Algorithm::nvls));
    CHECK_FALSE(offers("2.20", strided, kind, Algorithm::pat));
    CHECK(offers("2.23", strided, kind, Algorithm::pat));
    CHECK_FALSE(offers("2.28.9", many, kind, Algorithm::pat));  // one GPU a node only
    for (const NcclOption& o : nccl_options(tuning("2.20"), many, kind, 64_MiB))
      CHECK(o.algorithm == Algorithm::ring);
  }
  CHECK(tuning("2.19").serves_kind(AG, Algorithm::collnet_direct) == false);
  CHECK(tuning("2.20").serves_kind(AG, Algorithm::collnet_direct) == true);
}

TEST_CASE("PAT reaches 0.85 of the bus in 2.23 and 0.75 since 2.24") {
  const auto strided = machine(Architecture::hopper, {16, 16, 1, 1});
  const auto bandwidth = [&](const std::string& version) {
    return gb(option(version, strided, AG, 64_MiB, Algorithm::pat, Protocol::simple).bandwidth);
  };
  CHECK(bandwidth("2.23") == Approx(0.85 * 48));
  CHECK(bandwidth("2.24") == Approx(0.75 * 48));
}

TEST_CASE("CollNet's constants are those of 2.18 until 2.19 changes them") {
  const auto direct = static_cast<std::size_t>(Algorithm::collnet_direct);
  const auto chain = static_cast<std::size_t>(Algorithm::collnet_chain);
  CHECK(tuning("2.18").latency[direct].nvlink[2] == 8.0);
  CHECK(tuning("2.18").latency[chain].net[2] == 14);
  CHECK(tuning("2.19").latency[direct].net[2] == 31);
  CHECK(tuning("2.19").latency[chain].nvlink[2] == 2.8);
}

TEST_CASE(
    "on many nodes NCCL takes trees for AllReduce and moves to Ring for the longest messages") {
  const NcclTuning t = tuning("2.20");
  const auto choice = [&](std::int64_t nodes, Bytes bytes) {
    return nccl_choice(t, machine(Architecture::hopper, whole_nodes(nodes)), AR, bytes).algorithm;
  };
  CHECK(choice(1, 64_MiB) == Algorithm::nvls);
  CHECK(choice(4, 64_MiB) == Algorithm::nvls_tree);
  CHECK(choice(4, 1_GiB) == Algorithm::ring);
  CHECK(choice(64, 1_GiB) == Algorithm::nvls_tree);
  CHECK(choice(64, 8_GiB) == Algorithm::ring);
  CHECK(choice(256, 16_GiB) == Algorithm::nvls_tree);
  CHECK(choice(64, 1_KiB) == Algorithm::tree);
}

TEST_CASE("AllGather moves from LL over LL128 to Simple as messages grow") {
  const NcclTuning t = tuning("2.20");
  const auto on = machine(Architecture::hopper, whole_nodes(16));
  Protocol last = Protocol::ll;
  for (std::int64_t b = 1024; b <= (16LL << 30); b *= 2) {
    const NcclOption o = nccl_choice(t, on, AG, Bytes(b));
    CHECK(o.protocol >= last);
    last = o.protocol;
  }
  CHECK(last == Protocol::simple);
  CHECK(nccl_choice(t, on, AG, 1_KiB).protocol == Protocol::ll);
}

TEST_CASE("overrides pin algorithm and protocol, and what they leave nothing of is ignored") {
  const NcclTuning t = tuning("2.20");
  const auto on = machine(Architecture::hopper, whole_nodes(256));
  CHECK(nccl_choice(t, on, AG, 64_MiB, {.algorithm = {}, .protocol = Protocol::simple}).protocol ==
        Protocol::simple);
  CHECK(nccl_choice(t, on, AR, 64_MiB, {.algorithm = Algorithm::ring, .protocol = {}}).algorithm ==
        Algorithm::ring);
  CHECK(nccl_choice(t, on, AG, 64_MiB, {.algorithm = Algorithm::tree, .protocol = {}}).algorithm ==
        Algorithm::ring);
}

TEST_CASE("short messages get fewer channels, NVLS always sixteen") {
  const auto on = machine(Architecture::hopper, whole_nodes(1));
  CHECK(nccl_channels(on, Algorithm::ring, Protocol::simple, 1_KiB) == 1);
  CHECK(nccl_channels(on, Algorithm::ring, Protocol::simple, 256_KiB) == 8);  // 512 x 64 B each
  CHECK(nccl_channels(on, Algorithm::ring, Protocol::simple, 1_GiB) == 24);
  CHECK(nccl_channels(on, Algorithm::nvls, Protocol::simple, 1_GiB) == 16);
}

TEST_CASE("Blackwell and a node without NVLink still get an answer") {
  auto pcie = dgx(Architecture::ampere);
  pcie.kind = topology::NodeKind::pcie;
  pcie.gpu.nvlink_links = 0;
  const auto on = nccl_machine(pcie, whole_nodes(1));
  CHECK_FALSE(on.nvlink);
  for (const NcclOption& o : nccl_options(tuning("2.20"), on, AR, 1_MiB))
    CHECK(o.protocol != Protocol::ll128);
  auto blackwell = dgx(Architecture::blackwell);
  CHECK(nccl_machine(blackwell, whole_nodes(1)).nvls.has_value());
}

TEST_CASE("the time of a ring is its start, its hops and its bytes") {
  const NcclTuning t = tuning("2.20");
  const auto on = machine(Architecture::hopper, whole_nodes(256));
  const NcclOption simple =
      nccl_choice(t, on, AG, 400_MiB, {.algorithm = {}, .protocol = Protocol::simple});
  const NcclTime time = nccl_time(t, on, AG, 400_MiB, simple);
  CHECK(time.hops == 2047);
  CHECK(time.network_hops == 256);
  // 1791 hops of 4.8 us and 256 of 19.6 us.
  CHECK(us(time.latency() - time.start) == Approx(1791 * 4.8 + 256 * 19.6));
  // 8 NICs of 50 GB/s at 93.5 %.
  CHECK(gb(time.bandwidth) == Approx(374.0 * 2048 / 2047));
  CHECK(time.total() == time.latency() + time.transfer);
}

TEST_CASE("a collective reads and writes memory as its algorithm does") {
  CHECK(memory_traffic(AG, Algorithm::ring, 8, Bytes(800)) == Bytes(1400));
  CHECK(memory_traffic(RS, Algorithm::ring, 8, Bytes(800)) == Bytes(2100));
  CHECK(memory_traffic(AR, Algorithm::ring, 8, Bytes(800)) == Bytes(3500));
  CHECK(memory_traffic(AR, Algorithm::nvls, 8, Bytes(800)) == Bytes(1600));
  CHECK(memory_traffic(CollectiveKind::send_receive, Algorithm::p2p, 2, Bytes(800)) == Bytes(800));
}
