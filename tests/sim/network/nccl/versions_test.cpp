// One test for each change of NCCL's model between versions (tuning.cc of each tag), both
// sides of it; and how a version finds its file.
#include <catch2/catch.hpp>
#include <fstream>

#include "engine/check.hpp"
#include "tests/sim/nccl_machines.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::NcclGeneration;
using workloads::CollectiveKind;

namespace {

const std::string directory = STEPCAST_SOURCE_DIR "/scenarios/nccl";

std::string copy_with(const std::string& from, const std::string& to) {
  std::ifstream in(directory + "/2.20.toml");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.replace(text.find(from), from.size(), to);
  const std::string path = std::string(STEPCAST_BINARY_DIR) + "/nccl_broken.toml";
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("a version is served by the newest key that is not newer") {
  CHECK(tuning_of("2.8.3").version == "2.8.3");
  CHECK(tuning_of("2.10.3").version == "2.8.3");
  CHECK(tuning_of("2.14.3").version == "2.12");
  CHECK(tuning_of("2.17.1").version == "2.17");
  CHECK(tuning_of("2.18.1").version == "2.18.1");
  CHECK(tuning_of("2.18.5").version == "2.18.1");
  CHECK(tuning_of("2.18").version == "2.18.6");  // without a patch: the last of its line
  CHECK(tuning_of("2.20").version == "2.20");
  CHECK(tuning_of("2.20.5").version == "2.20");
  CHECK(tuning_of("2.22.3").version == "2.21");
  CHECK(tuning_of("2.24.3").version == "2.24");
  CHECK(tuning_of("2.26.6").version == "2.25");
  CHECK(tuning_of("2.27.7").version == "2.27");
  CHECK(tuning_of("2.28.3").version == "2.28.3");
  CHECK(tuning_of("2.28").version == "2.28.9");
  CHECK(tuning_of("2.29.7").version == "2.28.9");
  CHECK(tuning_of("2.30.7").version == "2.30");
}

TEST_CASE("a version that is too old or no version is the user's mistake") {
  CHECK_THROWS_AS(tuning_of("2.7.8"), InputError);
  CHECK_THROWS_AS(tuning_of("newest"), InputError);
  CHECK_THROWS_AS(tuning_of("2"), InputError);
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

TEST_CASE("between nodes, LL's hops in a node took 1.8 times as long until 2.17") {
  const auto on = machine_of(NcclGeneration::ampere, whole_nodes(4));
  const auto latency = [&](const std::string& version) {
    return latency_us(offered(version, on, {AG, 1_MiB}, Algorithm::ring, Protocol::ll), 1_MiB);
  };
  // 31 steps, 3 of them between nodes; since 2.18 a step in a node is at least the posting, 1 us
  CHECK(latency("2.8.3") == Approx(3.6 + 28 * 0.47 * 1.8 + 3 * 2.7));
  CHECK(latency("2.17") == Approx(3.6 + 28 * 0.47 * 1.8 + 3 * 2.7));
  auto intel = on;
  intel.node.cpu = "intel";
  CHECK(latency_us(offered("2.18.1", intel, {AG, 1_MiB}, Algorithm::ring, Protocol::ll), 1_MiB) ==
        Approx(6.6 + 28 * 1.0 + 3 * 2.7));
}

TEST_CASE(
    "a plugin's latency was not asked for in 2.8, took the hop's place, and adds since 2.18") {
  auto on = machine_of(NcclGeneration::ampere, whole_nodes(4));
  on.node.plugin_latency = 75_us;
  const auto latency = [&](const std::string& version, Protocol p) {
    return latency_us(offered(version, on, {AR, 1_GiB}, Algorithm::tree, p), 1_GiB);
  };
  CHECK(latency("2.8.3", Protocol::ll128) == Approx(4.4 + 2 * (7 * 1.25 + 2 * 8.5)));
  CHECK(latency("2.12", Protocol::ll128) == Approx(4.4 + 2 * (7 * 1.25 + 2 * 75)));
  CHECK(latency("2.12", Protocol::simple) == Approx(2 * (7 * 28 + 2 * 75)));
  CHECK(latency("2.20", Protocol::ll128) == Approx(14 + 2 * (7 * 1.25 + 2 * (8.5 + 75))));
  CHECK(latency("2.20", Protocol::simple) == Approx(2 * (7 * 28 + 2 * (28 + 150))));
  on.node.plugin_latency = {};
  CHECK(latency("2.12", Protocol::simple) == Approx(2 * (7 * 28 + 2 * 28)));
}

TEST_CASE("NCCL took Ampere for 235 GB/s at most until 2.17") {
  const auto one = machine_of(NcclGeneration::ampere, whole_nodes(1));
  const auto bus = [&](const std::string& version) {
    return in_gb(offered(version, one, {AG, 1_GiB}, Algorithm::ring).bandwidth) * 7 / 8;
  };
  CHECK(bus("2.8.3") == Approx(235));
  CHECK(bus("2.17") == Approx(235));
  CHECK(bus("2.18.1") == Approx(240));
}

TEST_CASE("LL128 had a ceiling for each collective in 2.8") {
  const auto one = machine_of(NcclGeneration::ampere, whole_nodes(1));
  const auto per_channel = [&](const std::string& version, CollectiveKind kind) {
    return in_gb(offered(version, one, {kind, 1_MiB}, Algorithm::ring, Protocol::ll128).bandwidth) *
           bus_factor(kind, 8) / static_cast<double>(one.ring.channels);
  };
  CHECK(per_channel("2.8.3", AG) == Approx(std::min(18.3, 0.92 * 235 / 12)));
  CHECK(per_channel("2.8.3", RS) == Approx(15.2));
  CHECK(per_channel("2.12", RS) == Approx(0.92 * 235 / 12));
}

TEST_CASE("Hopper counted as Volta without LL128 until 2.16") {
  const auto one = machine_of(NcclGeneration::hopper, whole_nodes(1));
  CHECK_FALSE(offers("2.14.3", one, {AR, 1_MiB}, Protocol::ll128));
  CHECK(offers("2.17.1", one, {AR, 1_MiB}, Protocol::ll128));
  CHECK_FALSE(offers("2.14.3", one, {AR, 1_MiB}, Algorithm::nvls));
  CHECK(offers("2.17.1", one, {AR, 1_MiB}, Algorithm::nvls));
}

TEST_CASE("Ring Simple's plateau began by ranks until 2.17, by bytes per channel since") {
  const auto on = machine_of(NcclGeneration::ampere, whole_nodes(2));
  const auto latency = [&](const std::string& version, Bytes bytes) {
    return latency_us(offered(version, on, {AR, bytes}, Algorithm::ring), bytes);
  };
  // 30 steps, 2 between nodes: 4 KiB a rank
  CHECK(latency("2.8.3", Bytes(16 * 4096 - 64)) == Approx(8.4 + 28 * 3.4 + 2 * 9.6));
  CHECK(latency("2.8.3", Bytes(16 * 4096)) == Approx(1.9 * (8.4 + 28 * 3.4 + 2 * 9.6)));
}

TEST_CASE("Tree Simple costs 28 us a hop, 4/6/14 in 2.18.6 and 4/4/14 with a base since 2.23") {
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(4));
  // 2 ((8 - 1) x NVLink + 2 levels x NET) + base
  const auto latency = [&](const std::string& version) {
    return latency_us(offered(version, on, {AR, 1_GiB}, Algorithm::tree, Protocol::simple), 1_GiB);
  };
  CHECK(latency("2.18.1") == Approx(2 * (7 * 28 + 2 * 28)));
  CHECK(latency("2.18.6") == Approx(2 * (7 * 4 + 2 * 14)));
  CHECK(latency("2.19") == Approx(2 * (7 * 28 + 2 * 28)));
  CHECK(latency("2.22") == Approx(2 * (7 * 28 + 2 * 28)));
  CHECK(latency("2.23") == Approx(2 * (7 * 4 + 2 * 14) + 8.4));
}

TEST_CASE("Ring LL reaches a quarter of the bus until 2.20 and half of it since 2.21") {
  const auto one = machine_of(NcclGeneration::ampere, whole_nodes(1));
  const auto ll = [&](const std::string& version, CollectiveKind kind) {
    return in_gb(offered(version, one, {kind, 64_KiB}, Algorithm::ring, Protocol::ll).bandwidth) *
           bus_factor(kind, 8);
  };
  CHECK(ll("2.20", AR) == Approx(60));
  CHECK(ll("2.20", AG) == Approx(80).epsilon(1e-4));  // a third inside one node
  CHECK(ll("2.21", AR) == Approx(87.7));              // half of 240, but at most 87.7
  CHECK(ll("2.21", AG) == Approx(87.7));
}

TEST_CASE("Hopper's LL ceiling rises from Ampere's in 2.21") {
  const auto one = machine_of(NcclGeneration::hopper, whole_nodes(1));
  const auto ll = [&](const std::string& version) {
    return in_gb(offered(version, one, {AR, 64_KiB}, Algorithm::ring, Protocol::ll).bandwidth) *
           bus_factor(AR, 8);
  };
  CHECK(ll("2.20") == Approx(87.7));
  CHECK(ll("2.21") == Approx(141));
}

TEST_CASE("Ring LL128 with one rank a node is discounted until 2.22") {
  const auto single = machine_of(NcclGeneration::ampere, one_rank_a_node(16));
  const auto share = [&](const std::string& version) {
    return in_gb(
               offered(version, single, {AG, 1_MiB}, Algorithm::ring, Protocol::ll128).bandwidth) *
           15 / 16;
  };
  CHECK(share("2.22") == Approx(0.7 * 24));
  CHECK(share("2.23") == Approx(20.0));  // 0.92 x 24, but at most 20 a channel
}

TEST_CASE("Ring AllReduce counts 2N network hops until 2.22 and 2(N-1) since 2.23") {
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(4));
  const auto latency = [&](const std::string& version) {
    return latency_us(offered(version, on, {AR, 1_KiB}, Algorithm::ring, Protocol::ll128), 1_KiB);
  };
  // 62 steps of 1.9 us in the node or 4.0 us between nodes, base 14.
  CHECK(latency("2.22") == Approx(14 + 54 * 1.9 + 8 * 4.0));
  CHECK(latency("2.23") == Approx(14 + 56 * 1.9 + 6 * 4.0));
}

TEST_CASE("NVLS latency is a base of 23 us in 2.18, 23 us a hop in 2.19 and 25 us since 2.21") {
  const auto one = machine_of(NcclGeneration::hopper, whole_nodes(1));
  const auto latency = [&](const std::string& version) {
    return latency_us(offered(version, one, {AR, 1_GiB}, Algorithm::nvls, Protocol::simple), 1_GiB);
  };
  CHECK(latency("2.18.1") == Approx(23));
  CHECK(tuning_of("2.18").latency[static_cast<std::size_t>(Algorithm::nvls)].base[2] == 23);
  CHECK(latency("2.20") == Approx(23));
  CHECK(latency("2.21") == Approx(25));
}

TEST_CASE("NVLSTree's network latency is 19 us in 2.18, 14 until 2.28.3 and 20.9 since 2.28.9") {
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(4));
  const auto latency = [&](const std::string& version) {
    return latency_us(offered(version, on, {AR, 1_GiB}, Algorithm::nvls_tree, Protocol::simple),
                      1_GiB);
  };
  CHECK(latency("2.18") == Approx(23 + 4 * 19));
  CHECK(latency("2.19") == Approx(23 + 4 * 14));
  CHECK(latency("2.28.3") == Approx(25 + 4 * 14));
  CHECK(latency("2.28.9") == Approx(25 + 4 * 20.9));
}

TEST_CASE(
    "NVLS turns bus into algorithm bandwidth by 3/4, 5/6, and by the ring's ratio since 2.28") {
  const auto one = machine_of(NcclGeneration::hopper, whole_nodes(1));
  const auto bandwidth = [&](const std::string& version) {
    return in_gb(offered(version, one, {AR, 1_GiB}, Algorithm::nvls, Protocol::simple).bandwidth);
  };
  CHECK(bandwidth("2.18.1") == Approx(320 * 0.75));
  CHECK(bandwidth("2.18.6") == Approx(320 * 5 / 6.0));
  CHECK(bandwidth("2.27") == Approx(320 * 5 / 6.0));
  CHECK(bandwidth("2.28.3") == Approx(320 * 0.85 * 7 / 8 * 2 * 8 / 14.0));
}

TEST_CASE("NVLSTree's ratio is 0.7 N/2(N-1) in 2.18, 5/6 of half the network, capped since 2.28") {
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(4));
  const auto bandwidth = [&](const std::string& version) {
    return in_gb(
        offered(version, on, {AR, 1_GiB}, Algorithm::nvls_tree, Protocol::simple).bandwidth);
  };
  CHECK(bandwidth("2.18") == Approx(8 * 40 * 0.7 * 4 / 6));
  CHECK(bandwidth("2.20") == Approx(8 * 24 * 5 / 6.0));
  CHECK(bandwidth("2.28.9") == Approx(8 * 45.5 * 32 / 62.0));
}

TEST_CASE("AllGather is served by Ring alone in 2.18, by NVLS since 2.19, by PAT since 2.23") {
  const auto one = machine_of(NcclGeneration::hopper, whole_nodes(1));
  const auto strided = machine_of(NcclGeneration::hopper, one_rank_a_node(16));
  const auto many = machine_of(NcclGeneration::hopper, whole_nodes(16));
  for (const CollectiveKind kind : {AG, RS}) {
    CHECK_FALSE(offers("2.18", one, {kind, 1_MiB}, Algorithm::nvls));
    CHECK(offers("2.19", one, {kind, 1_MiB}, Algorithm::nvls));
    CHECK_FALSE(offers("2.20", strided, {kind, 1_MiB}, Algorithm::pat));
    CHECK(offers("2.23", strided, {kind, 1_MiB}, Algorithm::pat));
    CHECK_FALSE(offers("2.28.9", many, {kind, 1_MiB}, Algorithm::pat));  // one GPU a node only
    for (const NcclOption& o : nccl_options(tuning_of("2.20"), many, {kind, 64_MiB}))
      CHECK(o.algorithm == Algorithm::ring);
  }
  CHECK(tuning_of("2.19").serves_kind(AG, Algorithm::collnet_direct) == false);
  CHECK(tuning_of("2.20").serves_kind(AG, Algorithm::collnet_direct) == true);
}

TEST_CASE("PAT reaches 0.85 of the bus in 2.23 and 0.75 since 2.24") {
  const auto strided = machine_of(NcclGeneration::hopper, one_rank_a_node(16));
  const auto bandwidth = [&](const std::string& version) {
    return in_gb(
        offered(version, strided, {AG, 64_MiB}, Algorithm::pat, Protocol::simple).bandwidth);
  };
  CHECK(bandwidth("2.23") == Approx(0.85 * 48));
  CHECK(bandwidth("2.24") == Approx(0.75 * 48));
}

TEST_CASE("CollNet's constants are those of 2.18 until 2.19 changes them") {
  const auto direct = static_cast<std::size_t>(Algorithm::collnet_direct);
  const auto chain = static_cast<std::size_t>(Algorithm::collnet_chain);
  CHECK(tuning_of("2.18").latency[direct].nvlink[2] == 8.0);
  CHECK(tuning_of("2.18").latency[chain].net[2] == 14);
  CHECK(tuning_of("2.19").latency[direct].net[2] == 31);
  CHECK(tuning_of("2.19").latency[chain].nvlink[2] == 2.8);
}

TEST_CASE(
    "one LL128 ceiling for Ring and Tree in 2.18.1, Tree's own since 2.18.6, NVLSTree's since "
    "2.28") {
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(4));
  const auto tree = [&](const char* version) {
    return in_gb(offered(version, on, {AR, 1_GiB}, Algorithm::tree, Protocol::ll128).bandwidth);
  };
  CHECK(tree("2.18.1") > tree("2.18.6"));
  CHECK(tree("2.18.6") == Approx(0.5 * 8 * 29.0));
  for (const char* version : {"2.18.6", "2.27"})
    CHECK(tuning_of(version).nvls_tree_cap.hopper == NodesGigabytes{0, 0, 0});
  CHECK(tuning_of("2.28.3").nvls_tree_cap.hopper == NodesGigabytes{0, 57.7, 45.5});
}

TEST_CASE("a lone rank of a node pays Ring's own network latency until 2.22, Tree's since 2.23") {
  const auto on = machine_of(NcclGeneration::hopper, one_rank_a_node(16));
  const auto latency = [&](const char* version, Protocol p) {
    return latency_us(offered(version, on, {AG, 1_KiB}, Algorithm::ring, p), 1_KiB);
  };
  CHECK(latency("2.22", Protocol::ll) == Approx(6.6 + 15 * 2.7));
  CHECK(latency("2.23", Protocol::ll) == Approx(6.6 + 15 * 5.0));
  CHECK(latency("2.22", Protocol::simple) == Approx(8.4 + 15 * 14.0));
  CHECK(latency("2.23", Protocol::simple) == Approx(8.4 + 15 * 14.0));  // Tree's is 14 by then
}

TEST_CASE(
    "NVLS gathers at 5/6 of the bus until 2.22, all of it, and without the own share since 2.27") {
  const auto one = machine_of(NcclGeneration::hopper, whole_nodes(1));
  const auto bandwidth = [&](const char* version) {
    return in_gb(offered(version, one, {AG, 1_GiB}, Algorithm::nvls).bandwidth);
  };
  CHECK(bandwidth("2.19") == Approx(320 * 5 / 6.0));
  CHECK(bandwidth("2.22") == Approx(320 * 5 / 6.0));
  CHECK(bandwidth("2.23") == Approx(320));
  CHECK(bandwidth("2.27") == Approx(320 * 7 / 8.0));
  CHECK(bandwidth("2.28.3") == Approx(320 * 7 / 8.0 * 0.85 * 7 / 8));
}

TEST_CASE("CollNetDirect gathers by the node until 2.26, by 0.9 of the network since 2.27") {
  const auto on = with_sharp(NcclGeneration::hopper, whole_nodes(4));
  const auto bandwidth = [&](const char* version) {
    return in_gb(offered(version, on, {AG, 1_GiB}, Algorithm::collnet_direct).bandwidth);
  };
  CHECK(bandwidth("2.20") == Approx(8 * in_gb(on.ring.in_node) * 0.85));
  CHECK(bandwidth("2.25") == Approx(8 * in_gb(on.ring.in_node) * 0.85));
  CHECK(bandwidth("2.27") == Approx(8 * 0.9 * in_gb(on.ring.between_nodes)));
  const auto alone = with_sharp(NcclGeneration::hopper, one_rank_a_node(4));
  CHECK(in_gb(offered("2.20", alone, {AG, 1_GiB}, Algorithm::collnet_direct).bandwidth) ==
        Approx(0.95 * in_gb(alone.ring.in_node)));
}

TEST_CASE("Blackwell takes Hopper's rows until 2.24, twice those in 2.25 and its own since 2.28") {
  const auto row = [](const char* version, const NcclCap NcclTuning::*cap) {
    return (tuning_of(version).*cap).row(NcclGeneration::blackwell);
  };
  CHECK(row("2.24", &NcclTuning::ll_bus) == tuning_of("2.24").ll_bus.hopper);
  CHECK(row("2.25", &NcclTuning::ll_bus) == NodesGigabytes{282, 90, 70});
  CHECK(row("2.27", &NcclTuning::tree_cap) == NodesGigabytes{77.4, 82.8, 72});
  CHECK(row("2.28.9", &NcclTuning::tree_cap) == NodesGigabytes{70, 42.8, 24});
  CHECK(row("2.28.9", &NcclTuning::ring_ll128_cap) == NodesGigabytes{40, 40, 40});
  CHECK(row("2.28.9", &NcclTuning::nvls_tree_cap)[2] == 43.8);
  CHECK(row("2.30", &NcclTuning::nvls_tree_cap)[2] == 80);
}

TEST_CASE(
    "since 2.28 the switch reaches 0.74 of Blackwell's channels, and NVLSTree its tree's share") {
  const auto one = machine_of(NcclGeneration::blackwell, whole_nodes(1));
  const double heads = static_cast<double>(one.nvls->channels);
  CHECK(in_gb(offered("2.28.9", one, {AR, 1_GiB}, Algorithm::nvls).bandwidth) ==
        Approx(in_gb(one.nvls->bus_in_node()) * 0.74 * (heads - 1) / heads * 2 * 8 / 14));
  const auto bandwidth = [](NcclGeneration a, Bytes bytes, const char* version) {
    const auto on = machine_of(a, whole_nodes(4));
    return in_gb(offered(version, on, {AR, bytes}, Algorithm::nvls_tree).bandwidth);
  };
  // 1 MiB = 64 B x 2^14: half.
  CHECK(bandwidth(NcclGeneration::blackwell, 1_MiB, "2.28.9") ==
        Approx(0.5 * bandwidth(NcclGeneration::blackwell, 4_GiB, "2.28.9")));
  CHECK(bandwidth(NcclGeneration::blackwell, 1_MiB, "2.27") ==
        Approx(bandwidth(NcclGeneration::blackwell, 4_GiB, "2.27")));
  CHECK(bandwidth(NcclGeneration::hopper, 1_MiB, "2.28.9") ==
        Approx(bandwidth(NcclGeneration::hopper, 4_GiB, "2.28.9")));
}

TEST_CASE(
    "Reduce takes a quarter of the bus by LL in a node until 2.20, where Broadcast takes a third") {
  const auto one = machine_of(NcclGeneration::volta, whole_nodes(1));
  const auto ll = [&](const char* version, CollectiveKind kind) {
    return in_gb(offered(version, one, {kind, 64_KiB}, Algorithm::ring, Protocol::ll).bandwidth);
  };
  const double bus = in_gb(one.ring.bus_in_node());
  CHECK(ll("2.20", RD) == Approx(std::min(39.0, bus / 4)));
  CHECK(ll("2.20", BC) == Approx(std::min(39.0, bus / 3)).epsilon(1e-4));
  CHECK(ll("2.21", RD) == ll("2.21", BC));
}
