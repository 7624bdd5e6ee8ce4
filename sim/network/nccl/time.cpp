#include "sim/network/nccl/time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/network/nccl/chunks.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

/// Microseconds per protocol (LL, LL128, Simple).
using PerProtocol = std::array<double, num_protocols>;

// NCCL's own base and hop latencies (tuning.cc v2.28.9, read 2026-11). Hops of Ring and Simple in a
// node are fitted instead (GenerationConstants::ring_step). Between nodes LL and LL128 take Tree's
// constant, not Ring's shorter one: it is the same wire and proxy, and 256 A100 on HDR measure
// 63-71 us for an AllReduce of 8 bytes where Tree's give 65 us.
constexpr PerProtocol ring_base{6.6, 14.0, 8.4}, tree_base{6.8, 14.0, 8.4};
constexpr PerProtocol ring_nvlink{0.6, 1.9, 3.4}, ring_pcie{1.0, 2.5, 5.7};
constexpr PerProtocol tree_nvlink{0.6, 1.25, 4.0}, tree_pcie{1.0, 1.9, 4.0};
constexpr PerProtocol network_hop{5.0, 8.5, 14.0};
// Ring, Simple, between nodes: NCCL's "plateau" of AllReduce. An AllGather step does the same work.
constexpr double plateau = 1.4;

struct Terms {
  const NcclTuning& tuning;
  const NcclMachine& machine;
  CollectiveKind kind;
  Bytes bytes;
  NcclOption option;
  const NetworkConstants& constants;

  std::size_t protocol() const { return static_cast<std::size_t>(option.protocol); }
  bool simple() const { return option.protocol == Protocol::simple; }
  double size() const { return static_cast<double>(bytes.value); }
  std::int64_t nodes() const { return machine.shape.nodes; }
  double per_node() const { return static_cast<double>(machine.shape.ranks_per_node); }
  const GenerationConstants& generation() const {
    return constants.of(machine.node.gpu.architecture.nccl);
  }
  Duration extra_hop() const {
    return constants.extra_hop(machine.node.network, machine.node.gpu.architecture.nccl);
  }
  const TransportConstants& transport() const { return constants.of(machine.node.network); }
  double nics_used() const {  // each as fast as its PCIe link lets it be
    return machine.nic_bandwidth / std::min(machine.node.nic, machine.node.pcie);
  }
  /// What the NICs of a node carry at `share` of their line rate.
  double nics(double share) const {
    return machine.nic_bandwidth.value * share * transport().bandwidth;
  }
};

Duration us(double value) { return to_duration(value * 1e-6); }
Duration us(const PerProtocol& row, const Terms& t) { return us(row[t.protocol()]); }

void transfer_at(NcclTime& time, const Terms& t, double bandwidth, double stretched = 1.0) {
  time.bandwidth = BytesPerSecond(bandwidth / stretched);
  time.transfer = to_duration(t.size() * stretched / bandwidth);
}

/// Depth of a double binary tree over nodes (sim/network/search/trees.hpp); NCCL's own ranking
/// rounds down.
std::int64_t levels_of(std::int64_t nodes) {
  return static_cast<std::int64_t>(std::ceil(std::log2(static_cast<double>(nodes))));
}

/// `rounds` of one chunk on every channel, at the speed of the whole.
Duration fill_of(double rounds, double round_bytes, double bandwidth) {
  return to_duration(rounds * round_bytes / bandwidth);
}

/// Broadcast and Reduce pass every chunk along the whole ring.
bool is_chain(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

double ring_share(const Terms& t) {
  const GenerationConstants& g = t.generation();
  return std::array{g.ring_ll, g.ring_ll128, g.ring_simple}[t.protocol()];
}

/// Bus bandwidth: NVLink in a node, the NICs between nodes.
double ring_bus(const Terms& t) {
  const double share = ring_share(t);
  if (t.nodes() == 1) return t.machine.in_node_bus.value * share;
  const SharedConstants& s = t.constants.shared;
  const double ll = s.nic_ll * t.transport().ll;
  const double nics = t.nics(std::array{ll, s.nic_ll128, s.nic_ring}[t.protocol()]);
  if (t.machine.shape.ranks_per_node == 1) return nics;
  return std::min(nics, t.machine.in_node_bus.value * share);
}

/// A ring of n ranks crosses between nodes N times a round; the path of a chunk meets them alike.
std::int64_t crossings(const Terms& t, std::int64_t steps) {
  if (t.nodes() == 1) return 0;
  if (t.machine.shape.ranks_per_node == 1) return steps;
  const std::int64_t n = t.machine.shape.ranks;
  return std::min(steps, ceil_div(steps * t.nodes(), n));
}

Duration ring_hop_in_node(const Terms& t) {
  if (!t.machine.nvlink) return us(ring_pcie, t);
  if (!t.simple()) return us(ring_nvlink, t);
  const Duration step = t.generation().ring_step;
  return t.nodes() == 1 ? step : to_duration(seconds(step) * plateau);
}

void ring_loops(NcclTime& time, const Terms& t) {
  const auto n = static_cast<double>(t.machine.shape.ranks);
  const double loop = static_cast<double>(t.machine.ring.ctas) * n * ring_chunk_bytes;
  const double loops = std::max(1.0, t.size() / loop);
  time.hops = static_cast<std::int64_t>(std::llround(static_cast<double>(time.hops) * loops));
}

/// Messages that the busiest NIC of a ring sends, one after the other (time.hpp). A last loop that
/// is not full counts by its share, so that time does not fall with bytes.
double ring_messages(const Terms& t, std::int64_t steps) {
  if (t.nodes() == 1) return 0.0;
  const NcclCall call{.kind = t.kind, .bytes = t.bytes};
  const auto channels = static_cast<double>(
      nccl_channels(t.tuning, t.machine, call, Algorithm::ring, t.option.protocol));
  const double of_a_nic = std::max(1.0, channels / t.nics_used());
  const double per_channel = t.size() / channels;
  if (is_chain(t.kind)) return of_a_nic * std::max(1.0, per_channel / slot_bytes);
  const double chunk = ring_chunk(t.option.protocol);
  const double loops =
      std::max(1.0, per_channel / static_cast<double>(t.machine.shape.ranks) / chunk);
  return of_a_nic * loops * static_cast<double>(steps) * (t.simple() ? 2.0 : 1.0);
}

NcclTime ring_time(const Terms& t) {
  NcclTime time;
  const std::int64_t ranks = t.machine.shape.ranks;
  const std::int64_t steps = is_chain(t.kind) ? ranks - 1 : ring_steps(t.kind, ranks);
  time.start = us(ring_base, t) + t.generation().start;
  time.hops = steps;
  time.network_hops = crossings(t, steps);
  time.hop_in_node = ring_hop_in_node(t);
  if (t.nodes() > 1)
    time.hop_between_nodes =
        us(network_hop[t.protocol()] * (t.simple() ? plateau : 1.0)) + t.extra_hop();
  const double bus = ring_bus(t);
  const double algorithm = bus / bus_factor(t.kind, ranks);
  if (is_chain(t.kind)) {
    // LL and LL128 pass lines on as they come; Simple waits for a slot.
    const double chunks = round_of(t.bytes, t.machine.ring.ctas, t.simple() ? slot_bytes : 0.0);
    time.fill = fill_of(static_cast<double>(steps - 1), chunks, bus);
    transfer_at(time, t, algorithm);
  } else if (t.nodes() == 1 && t.simple()) {
    ring_loops(time, t);
    transfer_at(time, t, algorithm, 1.0 + t.generation().ring_drain / static_cast<double>(steps));
  } else {
    transfer_at(time, t, algorithm);
  }
  time.messages = to_duration(ring_messages(t, steps) * seconds(t.transport().ring_message));
  time.transfer += time.messages;
  return time;
}

/// Bytes that pass a node's NICs each way per byte of a tree's AllReduce.
double tree_load(const Terms& t) { return t.nodes() == 2 ? 1.0 : 2.0; }

/// What the messages of a channel take at the busiest node: with two nodes a chunk goes up once and
/// down once; among more it comes from two children, goes to the parent, and back.
Duration tree_messages(const Terms& t) {
  if (t.nodes() == 1) return {};
  const auto message =
      t.constants.message(t.machine.node.network, t.machine.node.gpu.architecture.nccl);
  const double each = t.nodes() == 2 ? 2.0 : 6.0;
  return to_duration(each * tree_chunks(t.bytes, t.machine, t.option.protocol) * seconds(message));
}

/// A member passes the sum up to the next one and the result down to the one before.
double tree_bandwidth(const Terms& t) {
  const SharedConstants& s = t.constants.shared;
  double bandwidth = std::numeric_limits<double>::infinity();
  if (t.nodes() > 1)
    bandwidth = t.nics(std::array{s.nic_ll, s.nic_ll128, s.nic_tree}[t.protocol()]) *
                t.transport().tree / tree_load(t);
  if (t.per_node() < 2) return bandwidth;
  const double load = 2 * (t.per_node() - 1) / t.per_node();
  const double share = t.simple() ? 1.0 : ring_share(t) / t.generation().ring_simple;
  return std::min(bandwidth, t.machine.in_node_bus.value * s.nvlink_tree * share / load);
}

NcclTime tree_time(const Terms& t) {
  NcclTime time;
  const std::int64_t levels = levels_of(t.nodes());
  const std::int64_t chain = t.machine.shape.ranks_per_node - 1;
  time.start = us(tree_base, t) + t.generation().start;
  time.network_hops = 2 * levels;
  time.hops = time.network_hops + 2 * chain;
  time.hop_in_node = us(t.machine.nvlink ? tree_nvlink : tree_pcie, t);
  if (levels > 0) time.hop_between_nodes = us(network_hop, t) + t.extra_hop();
  const double bandwidth = tree_bandwidth(t);
  // A chain in the node passes slices on while it takes others in: half a round each.
  const double rounds = static_cast<double>(2 * levels) + 0.5 * static_cast<double>(chain);
  const double round =
      round_of(t.bytes, t.machine.tree.ctas, tree_chunk(t.bytes, t.machine, t.option.protocol));
  time.fill = fill_of(t.constants.shared.tree_fill * rounds, round, bandwidth);
  transfer_at(time, t, bandwidth);
  const Duration busy = tree_messages(t);
  if (busy > time.transfer) time.fill += busy - time.transfer;
  return time;
}

/// AllReduce: a member sends its buffer into the switch and one p-th of the sum back to all.
/// AllGather and ReduceScatter: it takes in, or sends, what the others have.
double nvls_bandwidth(const Terms& t) {
  const GenerationConstants& g = t.generation();
  const double port = t.machine.node.gpu.nvlink.value;
  if (t.kind == CollectiveKind::all_reduce) {
    const bool tree = t.option.algorithm == Algorithm::nvls_tree;
    const double sums = port * (tree ? g.nvls_tree : g.nvls_reduce) / (1 + 1 / t.per_node());
    if (g.nvls_bus == 0.0) return sums;
    return std::min(sums, port * g.nvls_bus / bus_factor(t.kind, t.machine.shape.ranks_per_node));
  }
  return port * g.nvls_gather / bus_factor(t.kind, t.machine.shape.ranks);
}

/// Bandwidth that fewer CTAs than NCCL's 16 leave.
double nvls_ctas(const Terms& t) {
  return std::min(1.0, static_cast<double>(t.machine.nvls->ctas) / nvls_channels);
}

NcclTime nvls_time(const Terms& t) {
  NcclTime time;
  time.start = t.generation().nvls_start;
  double bandwidth = nvls_bandwidth(t) * nvls_ctas(t);
  if (t.nodes() > 1) {  // with SHARP: in through the NICs once, out once
    time.hops = time.network_hops = 1;
    time.hop_between_nodes = us(t.tuning.latency[2].net[2]) + t.extra_hop();
    bandwidth = std::min(bandwidth, t.nics(t.constants.shared.nic_nvls_tree));
  }
  transfer_at(time, t, bandwidth);
  time.fill = fill_of(t.generation().nvls_fill, nvls_round(t.bytes, t.machine, false), bandwidth);
  return time;
}

/// Up and down a tree of nodes, NVLS inside each; only heads speak to the network.
NcclTime nvls_tree_time(const Terms& t) {
  NcclTime time;
  const std::int64_t levels = levels_of(t.nodes());
  const SharedConstants& s = t.constants.shared;
  time.start = t.generation().nvls_start;
  time.hops = time.network_hops = 2 * levels;
  time.hop_between_nodes = s.nvls_tree_level + t.extra_hop();
  // Of a rack not all members are heads, and rings use fewer of its NICs.
  const auto heads = static_cast<double>(t.machine.nvls->channels);
  const double nics = heads < t.per_node()
                          ? t.machine.own_nics / t.machine.nic_bandwidth * heads / t.per_node()
                          : 1.0;
  const double bandwidth =
      std::min(t.nics(s.nic_nvls_tree) * t.transport().tree * nics / tree_load(t),
               nvls_bandwidth(t) * nvls_ctas(t));
  transfer_at(time, t, bandwidth);
  const double rounds = t.generation().nvls_fill + s.nvls_tree_fill * static_cast<double>(levels);
  time.fill = fill_of(rounds, nvls_round(t.bytes, t.machine, true), bandwidth);
  return time;
}

/// Recursive doubling over ranks on nodes of their own; its kernels move chunks like Ring's.
NcclTime pat_time(const Terms& t) {
  NcclTime time;
  time.start = us(ring_base, t) + t.generation().start;
  time.hops = time.network_hops =
      static_cast<std::int64_t>(std::ceil(std::log2(static_cast<double>(t.machine.shape.ranks))));
  time.hop_between_nodes = us(network_hop, t) + t.extra_hop();
  transfer_at(time, t, ring_bus(t) * t.tuning.pat / bus_factor(t.kind, t.machine.shape.ranks));
  return time;
}

/// The network's switches sum: up once, down once, whatever the number of nodes. Nothing measured
/// is at hand: NCCL's own latencies, and the trees' shares of the wires.
NcclTime collnet_time(const Terms& t) {
  NcclTime time;
  const auto row = static_cast<std::size_t>(t.option.algorithm);
  const NcclLatency& latency = t.tuning.latency[row];
  const bool direct = t.option.algorithm == Algorithm::collnet_direct;
  const std::int64_t inside = direct ? std::min<std::int64_t>(1, t.machine.shape.ranks_per_node - 1)
                                     : t.machine.shape.ranks_per_node - 1;
  time.start = us(ring_base[2]) + t.generation().start;
  time.network_hops = 1;
  time.hops = 1 + 2 * inside;
  time.hop_in_node = us((t.machine.nvlink ? latency.nvlink : latency.pci)[2]);
  time.hop_between_nodes = us(latency.net[2]) + t.extra_hop();
  const double once = t.nics(t.constants.shared.nic_tree);
  transfer_at(time, t, std::min(once, tree_bandwidth(t) * tree_load(t)));
  return time;
}

}  // namespace

NcclTime nccl_time(const NcclTuning& tuning, const NcclMachine& machine, CollectiveKind kind,
                   Bytes bytes, const NcclOption& option, const NetworkConstants& constants) {
  const Terms terms{tuning, machine, kind, bytes, option, constants};
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
      return collnet_time(terms);
    case Algorithm::p2p:
    case Algorithm::copy_engine:
    case Algorithm::node_aware:
      break;
  }
  throw BrokenPromise("an algorithm that NCCL never chooses");
}

}  // namespace stepcast::sim
