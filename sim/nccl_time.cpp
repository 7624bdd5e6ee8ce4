#include "sim/nccl_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using topology::Architecture;
using workloads::CollectiveKind;

constexpr double micro = 1e-6;

/// Microseconds of one hop per protocol (LL, LL128, Simple), by the kind of wire.
struct HopLatency {
  std::array<double, 3> nvlink, pci, net;
};

// NCCL's own hop latencies (tuning.cc v2.28.9, read 2026-11), corrected where something was
// measured.
//
// Across nodes a Simple hop takes 1.4 times NCCL's constant. NCCL applies that factor to AllReduce
// alone ("plateau"); the study's AllReduce curves (arXiv 2411.13055, figure 2, NCCL 2.20,
// digitised) confirm it: from 512 MiB on 4 nodes exceed the bandwidth line by 400-470 us over 62
// ring steps, 64 nodes by 4-7 ms over 1022 steps, that is 6.5 us a step on average, as 4.8 us in
// the node and 19.6 us between nodes give. An AllGather step does the same work, so it gets the
// same hop.
//
// LL and LL128 hops between nodes take Tree's constant, not Ring's shorter one: it is the same wire
// and proxy, 256 A100 on HDR measure 63-71 us for an 8-byte AllReduce where Tree's give 65 us, and
// GPU to GPU over one NIC takes 3.9 us before NCCL's proxy adds its share (OSU, A100, RoCE). LL128
// itself is not confirmed by any multi-node measurement: the least certain constant here.
constexpr HopLatency ring_hop_one_node{{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {}};
constexpr HopLatency ring_hop{{1.0, 1.9, 4.8}, {1.0, 2.5, 8.0}, {5.0, 8.5, 19.6}};
constexpr HopLatency tree_hop{{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}};
// One level of NVLSTree: NCCL 2.28.9's constant (14 until 2.28.3 was too short by its own finding).
constexpr double nvls_tree_level = 20.9;
constexpr double nvls_start = 25.0;  // NCCL's NVLS latency since 2.21, nothing else at the start
constexpr std::array<double, 3> ring_start{6.6, 14.0, 8.4};
constexpr std::array<double, 3> tree_start{6.8, 14.0, 8.4};

// A slot of NCCL's buffer: 4 MiB in 8 steps (init.cc). A level of a tree passes a channel's first
// slot on only when it is there, and all channels share the NICs; short messages fill less than
// one. The mechanism is ours; the study's curves show it: NVLSTree on 4 to 256 nodes is 40-50 us a
// level above the bandwidth line from 8 MiB on, 25 us at 1 MiB, for 20.9 us of NCCL's constant.
constexpr double slot_bytes = 512.0 * 1024;

/// Achieved over planned bandwidth.
struct Efficiency {
  double start_us;  // of the kernel beyond NCCL's base constant
  double in_node;   // ring: bus bandwidth in a node over NCCL's plan
};

Efficiency efficiency_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::volta:  // 134.5 GB/s of 6 x 20 (vTrain nccl-tests table, 1 GiB)
      return {30.0, 1.12};
    case Architecture::ampere:  // 235 GB/s of 12 x 20 (superbenchmark log, 8 GiB)
      return {25.0, 0.98};
    case Architecture::hopper:  // 370 GB/s of 12 x 30 (NVIDIA, expected ring figure)
    case Architecture::blackwell:
      return {10.0, 1.03};
  }
  throw BrokenPromise("a GPU generation without network constants");
}

// Of the NICs' line rate: a ring reaches 374 of 400 GB/s (study, 16 GiB, 4 nodes; NVIDIA: 380 on
// H100, 192 of 200 on A100 nodes). A tree's algorithm bandwidth is at most half its NICs; NVLSTree
// reaches 169 of 200 GB/s (study, 64 nodes, slope from 256 MiB to 4 GiB).
constexpr double nic_efficiency = 0.935;
constexpr double nvls_tree_nic_efficiency = 0.845;
// NVLS AllReduce: 478 GB/s bus = 273 GB/s of the 8 x 40 planned (8 x H100, 476-480 reported).
constexpr double nvls_efficiency = 0.853;

struct Terms {
  const NcclTuning& tuning;
  const NcclMachine& machine;
  CollectiveKind kind;
  Bytes bytes;
  NcclOption option;

  std::size_t protocol() const { return static_cast<std::size_t>(option.protocol); }
  double size() const { return static_cast<double>(bytes.value); }
  double ranks() const { return static_cast<double>(machine.shape.ranks); }
  std::int64_t nodes() const { return machine.shape.nodes; }
  Efficiency efficiency() const { return efficiency_of(machine.node.gpu.architecture); }
};

Duration us(double value) { return to_duration(value * micro); }

/// NCCL's plan of the ring's bus, in whose terms option.bandwidth is.
BytesPerSecond planned_bus(const NcclMachine& machine) {
  return machine.shape.nodes <= 2 ? machine.ring.bus_in_node() : machine.ring.bus_between_nodes();
}

/// What the ring's links carry: NVLink in a node, the NICs between nodes.
BytesPerSecond achieved_bus(const Terms& t) {
  const BytesPerSecond inside = t.machine.ring.bus_in_node() * t.efficiency().in_node;
  if (t.nodes() == 1) return inside;
  return std::min(inside, t.machine.nic_bandwidth * nic_efficiency);
}

void transfer_at(NcclTime& time, const Terms& t, double bandwidth) {
  time.bandwidth = BytesPerSecond(bandwidth);
  time.transfer = to_duration(t.size() / bandwidth);
}

NcclTime ring_time(const Terms& t) {
  NcclTime time;
  const HopLatency& hop = t.nodes() == 1 ? ring_hop_one_node : ring_hop;
  time.start = us(ring_start[t.protocol()] + t.efficiency().start_us);
  const bool chain = t.kind == CollectiveKind::broadcast || t.kind == CollectiveKind::reduce;
  time.hops = chain ? 1 : ring_steps(t.kind, t.machine.shape.ranks);
  // A ring of n ranks crosses between nodes N times a round; the path of a chunk meets them alike.
  if (t.nodes() > 1)
    time.network_hops =
        t.machine.shape.ranks_per_node == 1
            ? time.hops
            : (time.hops * t.nodes() + t.machine.shape.ranks - 1) / t.machine.shape.ranks;
  time.hop_in_node = us((t.machine.nvlink ? hop.nvlink : hop.pci)[t.protocol()]);
  time.hop_between_nodes = us(hop.net[t.protocol()]);
  transfer_at(time, t, t.option.bandwidth.value * (achieved_bus(t) / planned_bus(t.machine)));
  return time;
}

/// Tree's share of its bandwidth by size, between NCCL's steps of a factor of two.
double tree_share(const Terms& t) {
  const auto& shares = t.tuning.tree_correction[t.protocol()];
  const double position = std::max(0.0, std::log2(t.size() / 64) - 0.5);
  const auto index = static_cast<std::size_t>(position);
  const auto share = [&](std::size_t i) { return i < shares.size() ? shares[i] : shares.back(); };
  return std::lerp(share(index), share(index + 1), position - std::floor(position));
}

/// The step that option.bandwidth has already taken.
double tree_step(const Terms& t) {
  const auto& shares = t.tuning.tree_correction[t.protocol()];
  const double position = std::floor(std::log2(std::max(1.0, std::floor(t.size() / 64))));
  const auto index = static_cast<std::size_t>(position);
  return index < shares.size() ? shares[index] : 1.0;
}

std::int64_t levels_of(std::int64_t nodes) {
  return static_cast<std::int64_t>(std::floor(std::log2(static_cast<double>(nodes))));
}

/// Time for the first slots of all channels to pass `levels` levels over the NICs of a node.
Duration tree_fill(const Terms& t, std::int64_t levels, std::int64_t channels) {
  if (levels == 0) return {};
  const auto count = static_cast<double>(channels);
  const double slots = std::min(t.size() / count, slot_bytes) * count;
  return to_duration(static_cast<double>(levels) * slots / t.machine.nic_bandwidth.value);
}

NcclTime tree_time(const Terms& t) {
  NcclTime time;
  time.start = us(tree_start[t.protocol()] + t.efficiency().start_us);
  time.network_hops = 2 * levels_of(t.nodes());
  time.hops = time.network_hops + 2 * (t.machine.shape.ranks_per_node - 1);
  time.hop_in_node = us((t.machine.nvlink ? tree_hop.nvlink : tree_hop.pci)[t.protocol()]);
  time.hop_between_nodes = us(tree_hop.net[t.protocol()]);
  const double planned = t.option.bandwidth.value / tree_step(t) * tree_share(t);
  transfer_at(time, t, planned * std::min(1.0, t.efficiency().in_node));
  time.fill = tree_fill(t, time.network_hops, t.machine.ring.ctas);
  return time;
}

BytesPerSecond nvls_bandwidth(const Terms& t) {
  return t.machine.nvls->bus_in_node() * nvls_efficiency;
}

NcclTime nvls_time(const Terms& t) {
  NcclTime time;
  time.start = us(nvls_start);
  const double bandwidth =
      t.kind == CollectiveKind::all_reduce ? nvls_bandwidth(t).value : t.option.bandwidth.value;
  transfer_at(time, t, bandwidth);
  const auto channels = static_cast<double>(t.machine.nvls->ctas);
  time.fill = to_duration(std::min(t.size() / channels, slot_bytes) * channels / bandwidth);
  return time;
}

/// Up and down a tree of nodes, NVLS inside each. Its first slots queue for the NICs at each level.
NcclTime nvls_tree_time(const Terms& t) {
  NcclTime time;
  time.start = us(nvls_start);
  time.hops = time.network_hops = 2 * levels_of(t.nodes());
  time.hop_between_nodes = us(nvls_tree_level);
  const double nics = t.machine.nic_bandwidth.value;
  // Two nodes send S to each other once; in a larger tree a node takes in S from below and S from
  // above.
  const double network =
      t.nodes() == 2 ? nics * nic_efficiency : nics / 2 * nvls_tree_nic_efficiency;
  transfer_at(time, t, std::min(network, nvls_bandwidth(t).value));
  time.fill = tree_fill(t, time.hops, t.machine.nvls->ctas);
  return time;
}

NcclTime pat_time(const Terms& t) {
  NcclTime time;
  time.start = us(ring_start[t.protocol()] + t.efficiency().start_us);
  time.hops = time.network_hops = static_cast<std::int64_t>(std::ceil(std::log2(t.ranks())));
  time.hop_between_nodes = us(ring_hop.net[t.protocol()]);
  transfer_at(time, t, t.option.bandwidth.value * (achieved_bus(t) / planned_bus(t.machine)));
  return time;
}

// Send/receive, NETWORK_AND_KERNELS.md 1.8: 5 us on NVLink and 17 us across nodes at 2 KB (vidur
// H100, CUPTI; the latter of low confidence); one H100 NIC carries 36 of 50 GB/s at 64 MiB.
constexpr double p2p_start_nvlink = 7.0;
constexpr double p2p_start_net = 17.0;
constexpr double p2p_nic_efficiency = 0.72;
constexpr double p2p_nvlink_efficiency = 0.81;  // 365 of 450 GB/s (sendrecv_perf, H100, 8 GiB)

BytesPerSecond nvlink_of_pair(const topology::NodeSpec& node) {
  if (nvlinks_within(node, 2) == 0) return node.pcie * 0.76;
  if (node.kind == topology::NodeKind::nvswitch) return node.gpu.nvlink * p2p_nvlink_efficiency;
  return node.nvlink_per_link * 0.9;  // neighbours of a cube mesh share one link at least
}

}  // namespace

NcclTime nccl_time(const NcclTuning& tuning, const NcclMachine& machine, CollectiveKind kind,
                   Bytes bytes, const NcclOption& option) {
  const Terms terms{tuning, machine, kind, bytes, option};
  switch (option.algorithm) {
    case Algorithm::ring:
      return ring_time(terms);
    case Algorithm::tree:
      return tree_time(terms);
    case Algorithm::nvls:
      return nvls_time(terms);
    case Algorithm::nvls_tree:
      return nvls_tree_time(terms);
    case Algorithm::pat:
      return pat_time(terms);
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
    case Algorithm::p2p:
    case Algorithm::copy_engine:
      break;
  }
  throw BrokenPromise("an algorithm that was never offered");
}

NcclTime point_to_point_time(const NcclMachine& machine, CollectiveKind kind, Bytes bytes) {
  const auto n = static_cast<double>(machine.shape.ranks);
  const auto p = static_cast<double>(machine.shape.ranks_per_node);
  const double size = static_cast<double>(bytes.value);
  // AlltoAll: every member sends 1/n of its share to each other one, S/n in all but for its own.
  const bool pair = kind == CollectiveKind::send_receive;
  const double inside = pair ? size : size / n * (p - 1);
  const double outside = pair ? size : size / n * (n - p);
  NcclTime time;
  const bool crosses = machine.shape.nodes > 1;
  time.start = us(crosses ? p2p_start_net : p2p_start_nvlink);
  time.hops = 1;
  time.network_hops = crosses ? 1 : 0;
  const BytesPerSecond nvlink = pair || machine.node.kind != topology::NodeKind::nvswitch
                                    ? nvlink_of_pair(machine.node)
                                    : machine.node.gpu.nvlink * p2p_nvlink_efficiency;
  double seconds = crosses && pair ? 0.0 : inside / nvlink.value;
  if (crosses) {
    const double nic = machine.nic_bandwidth.value / p * p2p_nic_efficiency;
    seconds = std::max(seconds, outside / nic);
  }
  time.transfer = to_duration(seconds);
  time.bandwidth = BytesPerSecond(seconds > 0 ? size / seconds : nvlink.value);
  return time;
}

Bytes memory_traffic(CollectiveKind kind, Algorithm algorithm, std::int64_t ranks, Bytes bytes) {
  const auto n = static_cast<double>(ranks);
  const double ring = static_cast<double>(bytes.value) * (n - 1) / n;
  const auto whole = static_cast<double>(bytes.value);
  const auto rounded = [](double b) { return Bytes(static_cast<std::int64_t>(std::llround(b))); };
  // In the switch: every member is read once and written once.
  if (algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree) return rounded(2 * whole);
  switch (kind) {
    case CollectiveKind::all_gather:  // each shard is read to be sent on and written on arrival
      return rounded(2 * ring);
    case CollectiveKind::reduce_scatter:  // read what came in and the own part, write the sum
                                          // onwards
      return rounded(3 * ring);
    case CollectiveKind::all_reduce:  // a ReduceScatter and an AllGather
      return rounded(5 * ring);
    case CollectiveKind::broadcast:
      return rounded(2 * whole);
    case CollectiveKind::reduce:  // as a ReduceScatter's step, of the whole message
      return rounded(3 * whole);
    case CollectiveKind::all_to_all:
      return rounded(2 * ring);
    case CollectiveKind::send_receive:  // read at the sender, written at the receiver
      return bytes;
  }
  throw BrokenPromise("a collective without memory traffic");
}

}  // namespace stepcast::sim
