#include <catch2/catch.hpp>
#include <cmath>

#include "nccl_machines.hpp"
#include "sim/network/nccl/time.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::NcclGeneration;
using workloads::CollectiveKind;

TEST_CASE("channels are those of the machines' own searches") {
  // DGX-1V 6 x 20, DGX A100 12 x 20, DGX H100 12 x 30; over nodes A100 8 x 24, H100 8 x 48.
  const auto v100 = machine_of(NcclGeneration::volta, whole_nodes(1));
  CHECK(v100.ring.channels == 6);
  CHECK(in_gb(v100.ring.bus_in_node()) == Approx(120));
  CHECK(v100.ring.ctas == 12);
  const auto a100 = machine_of(NcclGeneration::ampere, whole_nodes(1));
  CHECK(in_gb(a100.ring.bus_in_node()) == Approx(240));
  CHECK(a100.ring.ctas == 24);
  const auto h100 = machine_of(NcclGeneration::hopper, whole_nodes(1));
  CHECK(in_gb(h100.ring.bus_in_node()) == Approx(360));
  CHECK(h100.ring.ctas == 24);
  CHECK(h100.nvls->channels == 8);
  CHECK(in_gb(h100.nvls->in_node) == Approx(40));
  const auto a100s = machine_of(NcclGeneration::ampere, whole_nodes(4));
  CHECK(in_gb(a100s.ring.bus_between_nodes()) == Approx(192));
  CHECK(a100s.ring.ctas == 16);
  const auto h100s = machine_of(NcclGeneration::hopper, whole_nodes(4));
  CHECK(in_gb(h100s.ring.bus_between_nodes()) == Approx(384));
  CHECK(h100s.ring.ctas == 16);
  // DGX-1 has 4 NICs for 8 GPUs: 4 x 12.
  CHECK(in_gb(machine_of(NcclGeneration::volta, whole_nodes(4)).ring.bus_between_nodes()) ==
        Approx(48));
}

TEST_CASE("a group with fewer ranks per node has fewer NICs") {
  for (const std::int64_t p : {1, 2, 4, 8}) {
    const auto some = machine_of(NcclGeneration::hopper, {p * 16, 16, p, 1});
    CHECK(in_gb(some.nic_bandwidth) == Approx(50.0 * static_cast<double>(p)));
    CHECK(in_gb(some.ring.bus_between_nodes()) == Approx(48.0 * static_cast<double>(p)));
  }
  CHECK(in_gb(machine_of(NcclGeneration::volta, one_rank_a_node(16)).nic_bandwidth) ==
        Approx(12.5));
}

TEST_CASE("groups inside DGX-1V have the rings their links make") {
  // Quad 0-3: four links from each to the others. GPUs 0 and 1: one link.
  CHECK(in_gb(machine_of(NcclGeneration::volta, {4, 1, 4, 1}).ring.bus_in_node()) == Approx(80));
  CHECK(in_gb(machine_of(NcclGeneration::volta, {2, 1, 2, 1}).ring.bus_in_node()) == Approx(20));
}

TEST_CASE("the asymptotes of NCCL's model are those of the graphs") {
  // busbw = algbw x 2(n-1)/n at 16 GiB.
  const auto bus = [](const std::string& version, const NcclMachine& on, Algorithm algorithm) {
    const NcclOption o = offered(version, on, {AR, 16_GiB}, algorithm, Protocol::simple);
    return in_gb(o.bandwidth) * bus_factor(AR, on.shape.ranks);
  };
  CHECK(bus("2.28.9", machine_of(NcclGeneration::volta, whole_nodes(1)), Algorithm::ring) ==
        Approx(120));
  CHECK(bus("2.28.9", machine_of(NcclGeneration::ampere, whole_nodes(1)), Algorithm::ring) ==
        Approx(240));
  CHECK(bus("2.28.9", machine_of(NcclGeneration::hopper, whole_nodes(1)), Algorithm::ring) ==
        Approx(360));
  CHECK(bus("2.28.9", machine_of(NcclGeneration::hopper, whole_nodes(1)), Algorithm::nvls) ==
        Approx(476));
  CHECK(bus("2.28.9", machine_of(NcclGeneration::ampere, whole_nodes(4)), Algorithm::ring) ==
        Approx(192));
  CHECK(bus("2.28.9", machine_of(NcclGeneration::hopper, whole_nodes(4)), Algorithm::ring) ==
        Approx(384));
  CHECK(bus("2.28.9", machine_of(NcclGeneration::hopper, whole_nodes(2)), Algorithm::nvls_tree) ==
        Approx(462).epsilon(0.001));
}

TEST_CASE("the time of a ring is its start, its hops and its bytes") {
  const NcclTuning t = tuning_of("2.20");
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(256));
  const NcclOption simple =
      nccl_choice(t, on, {AG, 400_MiB}, {.algorithm = {}, .protocol = Protocol::simple});
  const NcclTime time = nccl_time(t, on, AG, 400_MiB, simple, catalogue().network_constants());
  CHECK(time.hops == 2047);
  CHECK(time.network_hops == 256);
  // NCCL's plateau on a step in the node and on its own 14 us between nodes.
  const NetworkConstants& c = catalogue().network_constants();
  const double inside = in_us(c.of(NcclGeneration::hopper).ring_step) * 1.4;
  const double between =
      14 * 1.4 + in_us(c.extra_hop(topology::Network::infiniband, NcclGeneration::hopper));
  CHECK(in_us(time.latency() - time.start) == Approx(1791 * inside + 256 * between).epsilon(1e-6));
  // 8 NICs of 50 GB/s.
  const double share = c.shared.nic_ring * c.of(topology::Network::infiniband).bandwidth;
  CHECK(in_gb(time.bandwidth) == Approx(400.0 * share * 2048 / 2047));
  CHECK(time.total() == time.latency() + time.transfer);
}

TEST_CASE("a ring between nodes pays for each message of a NIC, beside its bytes") {
  NetworkConstants c = catalogue().network_constants();
  c.transport[0].ring_message = to_duration(1e-6);
  const NcclTuning t = tuning_of("2.20");
  const auto messages = [&](std::int64_t nodes, Bytes bytes, CollectiveKind kind, Protocol p) {
    const NcclOption ring{.algorithm = Algorithm::ring, .protocol = p};
    const auto on = machine_of(NcclGeneration::hopper, whole_nodes(nodes));
    const NcclTime time = nccl_time(t, on, kind, bytes, ring, c);
    CHECK(time.total() == time.latency() + time.transfer);
    return in_us(time.messages);
  };
  // 16 channels over 8 NICs; a chunk of 2 MiB goes in two slices: 511 steps, one loop.
  CHECK(messages(64, 1024_MiB, AG, Protocol::simple) == Approx(511 * 2 * 2));
  // Two loops: 64 MiB of each rank are 4 MiB a channel.
  CHECK(messages(2, 1024_MiB, AG, Protocol::simple) == Approx(15 * 2 * 2 * 2));
  CHECK(messages(64, 1024_MiB, AR, Protocol::simple) == Approx(2 * 511 * 2 * 2));
  // A slot of LL128 goes as it is, 562.5 KiB of data.
  CHECK(messages(64, 1024_MiB, AG, Protocol::ll128) == Approx(511 * 2));
  CHECK(messages(2, 1024_MiB, AG, Protocol::ll128) == Approx(15 * 2 * 4096 / 562.5));
  // One channel uses one NIC.
  CHECK(messages(64, Bytes(8), AG, Protocol::ll) == Approx(511));
  CHECK(messages(1, 1024_MiB, AG, Protocol::simple) == 0.0);
  // NICs that their PCIe links hold back are as many.
  auto slow = machine_of(NcclGeneration::hopper, whole_nodes(64));
  slow.node.pcie = slow.node.nic * 0.5;
  slow = nccl_machine(slow.node, slow.shape);
  const NcclOption ring{.algorithm = Algorithm::ring, .protocol = Protocol::simple};
  CHECK(in_us(nccl_time(t, slow, AG, 1024_MiB, ring, c).messages) == Approx(511 * 2 * 2));
}

TEST_CASE("a collective reads and writes memory as its algorithm does") {
  CHECK(memory_traffic(AG, Algorithm::ring, 8, Bytes(800)) == Bytes(1400));
  CHECK(memory_traffic(RS, Algorithm::ring, 8, Bytes(800)) == Bytes(2100));
  CHECK(memory_traffic(AR, Algorithm::ring, 8, Bytes(800)) == Bytes(3500));
  CHECK(memory_traffic(AR, Algorithm::nvls, 8, Bytes(800)) == Bytes(1600));
  CHECK(memory_traffic(CollectiveKind::send_receive, Algorithm::p2p, 2, Bytes(800)) == Bytes(800));
}
