// Who serves which collective under which conditions (nccl@v2.28.9-1), and how many
// channels a call gets.
#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/sim/nccl_machines.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::NcclGeneration;
using workloads::CollectiveKind;
using workloads::Dtype;

TEST_CASE(
    "on many nodes NCCL takes trees for AllReduce and moves to Ring for the longest messages") {
  const NcclTuning t = tuning_of("2.20");
  const auto choice = [&](std::int64_t nodes, Bytes bytes) {
    return nccl_choice(t, machine_of(NcclGeneration::hopper, whole_nodes(nodes)), {AR, bytes})
        .algorithm;
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
  const NcclTuning t = tuning_of("2.20");
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(16));
  Protocol last = Protocol::ll;
  for (std::int64_t b = 1024; b <= (16LL << 30); b *= 2) {
    const NcclOption o = nccl_choice(t, on, {AG, Bytes(b)});
    CHECK(o.protocol >= last);
    last = o.protocol;
  }
  CHECK(last == Protocol::simple);
  CHECK(nccl_choice(t, on, {AG, 1_KiB}).protocol == Protocol::ll);
}

TEST_CASE("Blackwell and a node without NVLink still get an answer") {
  auto pcie = dgx(NcclGeneration::ampere);
  pcie.kind = topology::NodeKind::pcie;
  pcie.gpu.nvlink_links = 0;
  const auto on = nccl_machine(pcie, whole_nodes(1));
  CHECK_FALSE(on.nvlink);
  for (const NcclOption& o : nccl_options(tuning_of("2.20"), on, {AR, 1_MiB}))
    CHECK(o.protocol != Protocol::ll128);
  auto blackwell = dgx(NcclGeneration::blackwell);
  CHECK(nccl_machine(blackwell, whole_nodes(1)).nvls.has_value());
}

TEST_CASE("AllReduce is served by Ring and Tree in every version, with NVLS and NVLSTree beside") {
  const auto one = machine_of(NcclGeneration::hopper, whole_nodes(1));
  const auto two = machine_of(NcclGeneration::hopper, whole_nodes(2));
  for (const char* version : {"2.18.1", "2.18.6", "2.20", "2.24", "2.28.9", "2.30"}) {
    for (const Algorithm a : {Algorithm::ring, Algorithm::tree}) {
      CHECK(offers(version, one, {AR, 1_MiB}, a));
      CHECK(offers(version, two, {AR, 1_MiB}, a));
    }
    CHECK(offers(version, one, {AR, 1_MiB}, Algorithm::nvls));
    CHECK_FALSE(offers(version, two, {AR, 1_MiB}, Algorithm::nvls));  // needs SHARP
    CHECK_FALSE(offers(version, one, {AR, 1_MiB}, Algorithm::nvls_tree));
    CHECK(offers(version, two, {AR, 1_MiB}, Algorithm::nvls_tree));
  }
}

TEST_CASE("Broadcast and Reduce have Ring alone in every version") {
  const auto on = with_sharp(NcclGeneration::hopper, whole_nodes(4));
  for (const char* version : {"2.18.1", "2.20", "2.24", "2.28.9", "2.30"})
    for (const CollectiveKind kind : {BC, RD})
      for (const NcclOption& o : nccl_options(tuning_of(version), on, {kind, 1_MiB}))
        CHECK(o.algorithm == Algorithm::ring);
}

TEST_CASE("CollNet serves AllReduce only where the network's switches sum") {
  const auto plain = machine_of(NcclGeneration::ampere, whole_nodes(4));
  const auto sharp = with_sharp(NcclGeneration::ampere, whole_nodes(4));
  for (const Algorithm a : {Algorithm::collnet_direct, Algorithm::collnet_chain}) {
    CHECK_FALSE(offers("2.20", plain, {AR, 1_MiB}, a));
    CHECK(offers("2.18", sharp, {AR, 1_MiB}, a));
    CHECK(offers("2.20", sharp, {AR, 1_MiB}, a));
    CHECK(offers("2.28.9", sharp, {AR, 1_MiB}, a));
  }
}

TEST_CASE("CollNetDirect needs an NVSwitch and serves gathers since 2.20") {
  const auto mesh = with_sharp(NcclGeneration::volta, whole_nodes(4));
  CHECK_FALSE(offers("2.20", mesh, {AR, 1_MiB}, Algorithm::collnet_direct));
  CHECK(offers("2.20", mesh, {AR, 1_MiB}, Algorithm::collnet_chain));
  const auto on = with_sharp(NcclGeneration::ampere, whole_nodes(4));
  for (const CollectiveKind kind : {AG, RS}) {
    CHECK_FALSE(offers("2.19", on, {kind, 1_MiB}, Algorithm::collnet_direct));
    CHECK(offers("2.20", on, {kind, 1_MiB}, Algorithm::collnet_direct));
    CHECK_FALSE(offers("2.20", on, {kind, 1_MiB}, Algorithm::collnet_chain));
  }
}

TEST_CASE("gathers by CollNet need a NIC for every member") {
  auto node = dgx(NcclGeneration::ampere);
  node.nics = 4;  // two GPUs share one
  auto machine = nccl_machine(node, whole_nodes(4));
  machine.sharp = true;
  CHECK(network_heads(machine) < 8);
  CHECK(offers("2.20", machine, {AR, 1_MiB}, Algorithm::collnet_direct));
  CHECK_FALSE(offers("2.20", machine, {AG, 1_MiB}, Algorithm::collnet_direct));
  CHECK_FALSE(offers("2.28.9", machine, {AG, 1_MiB}, Algorithm::collnet_direct));
}

TEST_CASE("NVLS spans nodes with SHARP, for gathers since 2.27") {
  const auto sharp = with_sharp(NcclGeneration::hopper, whole_nodes(4));
  CHECK(offers("2.20", sharp, {AR, 1_MiB}, Algorithm::nvls));
  for (const CollectiveKind kind : {AG, RS}) {
    CHECK_FALSE(offers("2.25", sharp, {kind, 1_MiB}, Algorithm::nvls));
    CHECK(offers("2.27", sharp, {kind, 1_MiB}, Algorithm::nvls));
    CHECK(offers("2.28.9", sharp, {kind, 1_MiB}, Algorithm::nvls));
  }
}

TEST_CASE("with SHARP NCCL leaves Ring for AllReduce over many nodes") {
  const auto hopper = with_sharp(NcclGeneration::hopper, whole_nodes(64));
  CHECK(nccl_choice(tuning_of("2.28.9"), hopper, {AR, 64_MiB}).algorithm == Algorithm::nvls);
  const auto ampere = with_sharp(NcclGeneration::ampere, whole_nodes(64));
  CHECK(nccl_choice(tuning_of("2.20"), ampere, {AR, 64_MiB}).algorithm ==
        Algorithm::collnet_direct);
}

TEST_CASE("CollNet's estimate is its hops and its bytes over half the bus") {
  // DGX A100, 8 x NICs: Direct 2 (3.7 + 0.4 x 7) + 31 us; Chain 2 x 7 x 2.8 + 30 us.
  const auto on = with_sharp(NcclGeneration::ampere, whole_nodes(4));
  const double bus = in_gb(on.ring.bus_in_node());
  const NcclOption direct = offered("2.20", on, {AR, 1_GiB}, Algorithm::collnet_direct);
  CHECK(latency_us(direct, 1_GiB) == Approx(2 * (3.7 + 2.8) + 31));
  CHECK(in_gb(direct.bandwidth) == Approx(bus / 2));
  const NcclOption chain = offered("2.20", on, {AR, 1_GiB}, Algorithm::collnet_chain);
  CHECK(latency_us(chain, 1_GiB) == Approx(2 * 7 * 2.8 + 30));
  CHECK(in_gb(chain.bandwidth) == Approx(bus / 2));
  // Hopper: 0.85 of that.
  const auto h = with_sharp(NcclGeneration::hopper, whole_nodes(4));
  CHECK(in_gb(offered("2.20", h, {AR, 1_GiB}, Algorithm::collnet_direct).bandwidth) ==
        Approx(0.85 * in_gb(h.ring.bus_in_node()) / 2));
}

TEST_CASE("PAT serves gathers of one GPU a node, and can be switched off") {
  const auto alone = machine_of(NcclGeneration::hopper, one_rank_a_node(16));
  const auto whole = machine_of(NcclGeneration::hopper, whole_nodes(16));
  CHECK(offers("2.24", alone, {AG, 1_MiB}, Algorithm::pat));
  CHECK_FALSE(offers("2.24", whole, {AG, 1_MiB}, Algorithm::pat));
  CHECK_FALSE(offers("2.24", alone, {AR, 1_MiB}, Algorithm::pat));
  NcclOverrides off;
  off.pat = false;
  for (const NcclOption& o : nccl_options(tuning_of("2.24"), alone, {AG, 1_MiB}, off))
    CHECK(o.algorithm != Algorithm::pat);
}

TEST_CASE("PAT's latency grows with the logarithm of the nodes and 2.8 us a rank") {
  // 8 + floor(log2 64) x 14 / 3.5 + 2.8 x 64
  const auto on = machine_of(NcclGeneration::hopper, one_rank_a_node(64));
  CHECK(latency_us(offered("2.24", on, {AG, 1_MiB}, Algorithm::pat), 1_MiB) ==
        Approx(8 + 6 * 4 + 2.8 * 64));
}

TEST_CASE("LL128 needs NVLink inside and the NIC beside the GPU between nodes") {
  auto staged = dgx(NcclGeneration::ampere);
  staged.gpu_direct = false;
  CHECK(offers("2.20", nccl_machine(staged, whole_nodes(1)), {AR, 1_MiB}, Protocol::ll128));
  CHECK_FALSE(offers("2.20", nccl_machine(staged, whole_nodes(2)), {AR, 1_MiB}, Protocol::ll128));
  CHECK(offers("2.20", machine_of(NcclGeneration::ampere, whole_nodes(2)), {AR, 1_MiB},
               Protocol::ll128));
}

TEST_CASE("Volta, Ampere and Hopper have LL128 in every version, Blackwell since 2.25") {
  for (const NcclGeneration a :
       {NcclGeneration::volta, NcclGeneration::ampere, NcclGeneration::hopper})
    CHECK(offers("2.18.1", machine_of(a, whole_nodes(1)), {AR, 1_MiB}, Protocol::ll128));
  const auto blackwell = machine_of(NcclGeneration::blackwell, whole_nodes(1));
  CHECK_FALSE(offers("2.24", blackwell, {AR, 1_MiB}, Protocol::ll128));
  CHECK(offers("2.25", blackwell, {AR, 1_MiB}, Protocol::ll128));
}

TEST_CASE("NCCL_PROTO=LL128 runs it where NCCL would not by itself") {
  auto staged = dgx(NcclGeneration::ampere);
  staged.gpu_direct = false;
  const auto on = nccl_machine(staged, whole_nodes(2));
  NcclOverrides overrides;
  overrides.protocols[*choice_index(AR)] = ProtocolSet(0b010);
  CHECK(nccl_choice(tuning_of("2.20"), on, {AR, 1_MiB}, overrides).protocol == Protocol::ll128);
}

TEST_CASE(
    "a plugin that forbids LL and LL128 leaves Simple, in a node too, but for the user's word") {
  auto node = dgx(NcclGeneration::ampere);
  node.low_latency_protocols = false;
  for (const std::int64_t nodes : {1, 2}) {
    const auto on = nccl_machine(node, whole_nodes(nodes));
    for (const NcclOption& o : nccl_options(tuning_of("2.20"), on, {AR, 1_KiB}))
      CHECK(o.protocol == Protocol::simple);
    NcclOverrides overrides;
    overrides.protocols[*choice_index(AR)] = ProtocolSet(0b001);
    CHECK(nccl_choice(tuning_of("2.20"), on, {AR, 1_KiB}, overrides).protocol == Protocol::ll);
  }
}

TEST_CASE("the latency that EFA's plugin states sends short AllReduces to Tree, as measured") {
  // Two p4de: Ring's four hops of 14 + 2 x 75 us against Tree's two. Without it Ring is taken,
  // whose 26 hops in nodes take longer than the 161 us that 2 x p4de measure altogether.
  auto node = dgx(NcclGeneration::ampere);
  node.low_latency_protocols = false;
  const auto choice = [&] {
    return nccl_choice(tuning_of("2.20"), nccl_machine(node, whole_nodes(2)), {AR, Bytes(8)});
  };
  CHECK(choice().algorithm == Algorithm::ring);
  node.plugin_latency = 75_us;
  CHECK(choice().algorithm == Algorithm::tree);
}

TEST_CASE("fp8 sums take Tree beyond 8 ranks since 2.24") {
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(4));
  CHECK_THROWS_AS(nccl_choice(tuning_of("2.23"), on, {AR, 8_GiB, Dtype::fp8}), InputError);
  CHECK(nccl_choice(tuning_of("2.24"), on, {AR, 8_GiB, Dtype::fp8}).algorithm == Algorithm::tree);
  const auto eight = machine_of(NcclGeneration::hopper, whole_nodes(1));
  CHECK(nccl_choice(tuning_of("2.24"), eight, {AR, 8_GiB, Dtype::fp8}).algorithm ==
        Algorithm::ring);
  // AllGather only moves them; ReduceScatter has nothing but Ring.
  CHECK(nccl_choice(tuning_of("2.24"), on, {AG, 1_GiB, Dtype::fp8}) ==
        nccl_choice(tuning_of("2.24"), on, {AG, 1_GiB}));
  CHECK(nccl_choice(tuning_of("2.24"), on, {RS, 1_GiB, Dtype::fp8}).algorithm == Algorithm::ring);
}

TEST_CASE("fp8 sums have no NVLink SHARP") {
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(1));
  CHECK(offers("2.24", on, {AR, 1_GiB}, Algorithm::nvls));
  CHECK_FALSE(offers("2.24", on, {AR, 1_GiB, Dtype::fp8}, Algorithm::nvls));
  CHECK(offers("2.24", on, {AG, 1_GiB, Dtype::fp8}, Algorithm::nvls));
}

TEST_CASE("a group of calls pays Ring's latency once per row of channels, Tree's once per batch") {
  // 16 kernel channels: 64 calls are 4 rows, and less than one batch of 10.
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(4));
  REQUIRE(on.ring.ctas == 16);
  const auto latency = [&](std::int64_t grouped, Algorithm a, Protocol p) {
    return latency_us(offered("2.20", on, {AR, 1_MiB, Dtype::bf16, grouped}, a, p), 1_MiB);
  };
  const double ring = latency(1, Algorithm::ring, Protocol::ll128);
  CHECK(latency(16, Algorithm::ring, Protocol::ll128) == Approx(ring));
  CHECK(latency(64, Algorithm::ring, Protocol::ll128) == Approx(4 * ring));
  const double tree = latency(1, Algorithm::tree, Protocol::ll);
  CHECK(latency(64, Algorithm::tree, Protocol::ll) == Approx(tree));
  CHECK(latency(16 * 11, Algorithm::tree, Protocol::ll) == Approx(2 * tree));
}

TEST_CASE("a Broadcast hop is paid once on NVSwitch, by every rank where rings differ") {
  const auto alike = machine_of(NcclGeneration::ampere, whole_nodes(1));
  const auto mesh = machine_of(NcclGeneration::volta, whole_nodes(1));
  const auto nodes = machine_of(NcclGeneration::ampere, whole_nodes(4));
  const auto latency = [](const NcclMachine& on, Protocol p) {
    return latency_us(offered("2.28.9", on, {BC, 1_MiB}, Algorithm::ring, p), 1_MiB);
  };
  CHECK(latency(alike, Protocol::ll) == Approx(6.6 + 0.6));
  CHECK(latency(mesh, Protocol::ll) == Approx(6.6 + 8 * 0.6));
  CHECK(latency(mesh, Protocol::simple) == Approx(8.4 + 8 * 4.0));  // Tree's
  CHECK(latency(nodes, Protocol::ll) == Approx(6.6 + 32 * 2.7));
}

TEST_CASE("Ring crosses to and from a root in n steps and keeps the whole bus") {
  const auto on = machine_of(NcclGeneration::ampere, whole_nodes(1));
  const double bus = in_gb(on.ring.bus_in_node());
  CHECK(ring_steps(RD, 8) == 8);
  for (const CollectiveKind kind : {BC, RD})
    CHECK(in_gb(offered("2.20", on, {kind, 1_GiB}, Algorithm::ring).bandwidth) == Approx(bus));
}

TEST_CASE("short messages get fewer channels") {
  const NcclTuning t = tuning_of("2.20");
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(1));
  const auto channels = [&](Bytes bytes, Algorithm a, Protocol p) {
    return nccl_channels(t, on, {AR, bytes}, a, p);
  };
  CHECK(channels(1_KiB, Algorithm::ring, Protocol::simple) == 1);
  CHECK(channels(256_KiB, Algorithm::ring, Protocol::simple) == 8);  // 512 x 64 B each
  CHECK(channels(1_GiB, Algorithm::ring, Protocol::simple) == 24);
  CHECK(channels(64_KiB, Algorithm::ring, Protocol::ll) == 2);      // 512 x 8 B x 8 ranks
  CHECK(channels(64_KiB, Algorithm::tree, Protocol::ll) == 16);     // 512 x 8 B
  CHECK(channels(64_KiB, Algorithm::ring, Protocol::ll128) == 12);  // 640 x 8 B
  CHECK(channels(1_KiB, Algorithm::nvls, Protocol::simple) == 16);
}

TEST_CASE("since 2.23 a channel carries at least 16 KiB") {
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(1));
  const auto channels = [&](const char* version, CollectiveKind kind) {
    return nccl_channels(tuning_of(version), on, {kind, 64_KiB}, Algorithm::ring, Protocol::ll128);
  };
  CHECK(channels("2.22", AG) == 12);
  CHECK(channels("2.23", AG) == 4);  // 64 KiB of traffic
  CHECK(channels("2.23", AR) == 8);  // 128 KiB: there and back
}

TEST_CASE("CTAs are 24 in a node, 16 between nodes and for NVLS, 16 on Blackwell since 2.28") {
  const auto ctas = [](const char* version, NcclGeneration a, std::int64_t nodes,
                       Algorithm algorithm) {
    const NcclTuning t = tuning_of(version);
    const auto on = limited_machine(machine_of(a, whole_nodes(nodes)), t, {});
    return nccl_channels(t, on, {AR, 1_GiB}, algorithm, Protocol::simple);
  };
  CHECK(ctas("2.20", NcclGeneration::ampere, 1, Algorithm::ring) == 24);
  CHECK(ctas("2.20", NcclGeneration::hopper, 1, Algorithm::ring) == 24);
  CHECK(ctas("2.20", NcclGeneration::hopper, 4, Algorithm::ring) == 16);
  CHECK(ctas("2.20", NcclGeneration::hopper, 1, Algorithm::nvls) == 16);
  CHECK(ctas("2.20", NcclGeneration::hopper, 4, Algorithm::nvls_tree) == 16);
  CHECK(ctas("2.27", NcclGeneration::blackwell, 1, Algorithm::ring) > 16);
  CHECK(ctas("2.28.3", NcclGeneration::blackwell, 1, Algorithm::ring) == 16);
}

TEST_CASE("registered buffers leave NVLS 4 to 6 CTAs") {
  const NcclTuning t = tuning_of("2.28.9");
  NcclOverrides registered;
  registered.registered_buffers = true;
  const auto ctas = [&](const NcclMachine& on, CollectiveKind kind) {
    return nccl_channels(t, on, {kind, 1_GiB}, Algorithm::nvls, Protocol::simple, registered);
  };
  const auto one = machine_of(NcclGeneration::hopper, whole_nodes(1));
  CHECK(ctas(one, AR) == 4);
  CHECK(ctas(one, AG) == 4);
  CHECK(ctas(one, RS) == 5);
  CHECK(ctas(with_sharp(NcclGeneration::hopper, whole_nodes(4)), RS) == 6);
}

TEST_CASE("CollNetDirect gives channels up for short messages") {
  const auto on = with_sharp(NcclGeneration::ampere, whole_nodes(4));
  const NcclTuning t = tuning_of("2.20");
  std::int64_t last = 1;
  for (const Bytes b : {64_KiB, 1_MiB, 16_MiB, 64_MiB, 1_GiB}) {
    const std::int64_t channels =
        nccl_channels(t, on, {AR, b}, Algorithm::collnet_direct, Protocol::simple);
    CHECK(channels >= last);
    CHECK(channels <= on.ring.ctas);
    last = channels;
  }
  CHECK(last == on.ring.ctas);
}

TEST_CASE("every kind is served on every machine in every version, and longer never sooner") {
  for (const std::string& version : nccl_versions(STEPCAST_SOURCE_DIR "/scenarios/nccl")) {
    const NcclTuning t = tuning_of(version);
    for (const NcclGeneration a : {NcclGeneration::volta, NcclGeneration::ampere,
                                   NcclGeneration::hopper, NcclGeneration::blackwell})
      for (const GroupShape shape : {whole_nodes(1), whole_nodes(2), whole_nodes(32),
                                     one_rank_a_node(16), GroupShape{2, 1, 2, 1}})
        for (const bool sharp : {false, true})
          for (const CollectiveKind kind : {AR, AG, RS, BC, RD}) {
            NcclMachine on = machine_of(a, shape);
            on.sharp = sharp && shape.nodes > 1;
            for (const Bytes b : {1_KiB, 1_MiB, 1_GiB})
              for (const NcclOption& o : nccl_options(t, on, {kind, b})) {
                INFO(version << " " << name_of(o.algorithm) << " " << shape.ranks);
                CHECK(o.bandwidth.value > 0);
                CHECK(o.estimate > Duration{});
              }
            CHECK_FALSE(nccl_options(t, on, {kind, 1_MiB}).empty());
          }
  }
}
