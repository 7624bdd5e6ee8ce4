#include "sim/network/nccl/estimate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using topology::NcclGeneration;
using workloads::CollectiveKind;

constexpr double giga = 1e9;

/// One question to NCCL's model. Bandwidths in GB/s and latencies in us, as in its tables.
struct Question {
  const NcclTuning& tuning;
  const NcclMachine& machine;
  NcclCall call;

  std::int64_t nodes() const { return machine.shape.nodes; }
  double ranks() const { return static_cast<double>(machine.shape.ranks); }
  double per_node() const { return ranks() / static_cast<double>(nodes()); }
  std::size_t row() const {
    return static_cast<std::size_t>(std::min<std::int64_t>(nodes(), 3) - 1);
  }
  NcclGeneration generation() const { return machine.node.gpu.architecture.nccl; }
  double steps() const { return static_cast<double>(ring_steps(call.kind, machine.shape.ranks)); }
  double cap(const NcclCap& cap) const { return cap.row(generation())[row()]; }
  bool lone_ranks() const { return machine.shape.ranks_per_node == 1; }
  bool all_reduce() const { return call.kind == CollectiveKind::all_reduce; }
  bool to_or_from_root() const {
    return call.kind == CollectiveKind::broadcast || call.kind == CollectiveKind::reduce;
  }

  /// Across nodes tuning.cc picks the row by CPU: AMD or mixed, and everything else.
  double ll_cap() const {
    if (nodes() == 1) return cap(tuning.ll_bus);
    return (machine.node.cpu == "amd" ? tuning.ll_bus.ampere : tuning.ll_bus.volta)[row()];
  }
  double inside(Algorithm a, Protocol p) const {
    const NcclLatency& latency = tuning.latency[index_of(a)];
    const double hop = (machine.nvlink ? latency.nvlink : latency.pci)[index_of(p)];
    return nodes() > 1 && p == Protocol::ll ? hop * tuning.ll_inside_between_nodes : hop;
  }
  double between(Algorithm a, Protocol p) const {
    const bool as_tree = lone_ranks() && tuning.lone_ranks_take_tree_network;
    const double hop = tuning.latency[index_of(as_tree ? Algorithm::tree : a)].net[index_of(p)];
    const double stated = seconds(machine.node.plugin_latency) * 1e6;
    switch (tuning.plugin_latency) {
      case PluginLatency::ignored:
        return hop;
      case PluginLatency::replaces:
        return stated > 0 ? stated : hop;
      case PluginLatency::adds:
        return hop + stated * (p == Protocol::simple ? 2 : 1);
    }
    throw BrokenPromise("a plugin's latency without a rule");
  }
  /// What a channel carries with LL128.
  double ll128_cap(const NcclCap& by_nodes) const {
    const double by_kind = tuning.ll128_per_channel[*choice_index(call.kind)];
    return by_kind > 0 ? by_kind : cap(by_nodes);
  }
};

double bus_of(const Question& q, const ChannelGraph& graph) {
  const double bus =
      (q.nodes() <= 2 ? graph.bus_in_node() : graph.bus_between_nodes()).value / giga;
  const double most = q.tuning.bus_cap[static_cast<std::size_t>(q.generation())];
  return most > 0 ? std::min(bus, most) : bus;
}

double ring_bus(const Question& q, Protocol protocol) {
  const ChannelGraph& ring = q.machine.ring;
  const double bus = bus_of(q, ring);
  switch (protocol) {
    case Protocol::ll: {
      const bool one_node =
          q.nodes() == 1 && !q.all_reduce() && q.call.kind != CollectiveKind::reduce;
      return std::min(bus * (one_node ? q.tuning.ring_ll_one_node : q.tuning.ring_ll), q.ll_cap());
    }
    case Protocol::ll128: {
      const double share =
          q.lone_ranks() ? q.tuning.ring_ll128_one_rank_per_node : q.tuning.ring_ll128;
      return std::min(bus * share,
                      static_cast<double>(ring.channels) * q.ll128_cap(q.tuning.ring_ll128_cap));
    }
    case Protocol::simple:
      return bus;
  }
  throw BrokenPromise("a protocol without a bandwidth");
}

double tree_bus(const Question& q, Protocol protocol) {
  const ChannelGraph& tree = q.machine.tree;
  const auto channels = static_cast<double>(tree.channels);
  double bus = std::min(0.92 * bus_of(q, tree), channels * q.cap(q.tuning.tree_cap));
  if (protocol == Protocol::ll) bus = std::min(bus / 3.8, q.ll_cap());
  if (protocol == Protocol::ll128)
    bus = std::min(bus * (q.nodes() == 1 ? 7.0 / 9.0 : q.tuning.tree_ll128),
                   channels * q.ll128_cap(q.tuning.tree_ll128_cap));
  // The search lays plain instead of balanced trees over nodes with one member.
  return q.lone_ranks() && q.tuning.plain_trees_are_slower ? 0.85 * bus : bus;
}

/// Since 2.28: what the switch reaches of a channel, (C-1)/C of the heads, both directions for
/// AllReduce; NVLSTree sends to two nodes each once.
double nvls_channel(const Question& q, Algorithm algorithm) {
  const ChannelGraph& nvls = *q.machine.nvls;
  const auto heads = static_cast<double>(nvls.channels);
  double inside = nvls.in_node.value / giga *
                  q.tuning.nvls_efficiency[static_cast<std::size_t>(q.generation())] * (heads - 1) /
                  heads;
  inside *= q.all_reduce() ? 2 : (q.per_node() - 1) / q.per_node();
  if (q.nodes() == 1) return inside;
  double between = nvls.between_nodes.value / giga;
  if (algorithm == Algorithm::nvls) return std::min(inside, between);
  if (q.nodes() <= 2) between *= 2;
  return std::min({inside, between, q.cap(q.tuning.nvls_tree_cap)});
}

/// Until 2.27: the plain channel speed.
double old_nvls_channel(const Question& q, Algorithm algorithm) {
  const ChannelGraph& nvls = *q.machine.nvls;
  double inside = nvls.in_node.value / giga;
  double between = nvls.between_nodes.value / giga;
  if (!q.all_reduce()) {
    if (q.tuning.nvls_gather_skips_own_share) inside *= (q.per_node() - 1) / q.per_node();
    between *= q.tuning.nvls_gather_network;
  }
  if (q.nodes() == 1) return inside;
  if (algorithm == Algorithm::nvls_tree && q.tuning.nvls_tree_halves_network && q.nodes() > 2)
    between /= 2;
  return std::min(inside, between);
}

double ratio_of(const Question& q, BusRatio ratio) {
  switch (ratio) {
    case BusRatio::three_quarters:
      return 0.75;
    case BusRatio::five_sixths:
      return 5.0 / 6.0;
    case BusRatio::seven_tenths_nodes: {
      const auto n = static_cast<double>(q.nodes());
      return n > 1 ? 0.7 * n / (2 * (n - 1)) : 0.7;
    }
    case BusRatio::ring:
      return q.ranks() / q.steps();
  }
  throw BrokenPromise("a bus ratio without a rule");
}

double nvls_bandwidth(const Question& q, Algorithm algorithm) {
  const bool tree = algorithm == Algorithm::nvls_tree;
  const BusRatio ratio = tree ? q.tuning.nvls_tree_ratio : q.tuning.nvls_ratio;
  const double channel = q.tuning.nvls_ratio == BusRatio::ring ? nvls_channel(q, algorithm)
                                                               : old_nvls_channel(q, algorithm);
  const double bus = static_cast<double>(q.machine.nvls->channels) * channel;
  const bool converted = q.all_reduce() || q.tuning.gathers_are_converted;
  return converted ? bus * ratio_of(q, ratio) : bus;
}

/// Every member sends to the heads, the GPUs beside a NIC; the network's switches sum.
double collnet_direct_bandwidth(const Question& q) {
  const ChannelGraph& graph = q.machine.ring;
  const double p = q.per_node();
  const double inside = graph.in_node.value / giga;
  if (q.call.is_gather()) {
    const double network = q.tuning.collnet_gather_network * graph.between_nodes.value / giga;
    if (network > 0) return p * std::min(inside, network);
    return p * inside * std::lerp(0.95, 0.85, (p - 1) / 7);  // measured at 1 and 8 per node
  }
  const double members_per_head = p / static_cast<double>(graph.channels);
  double bus = graph.bus_in_node().value / giga / ((members_per_head + 1) / 2);
  if (q.generation() >= NcclGeneration::hopper) bus *= 0.85;
  return 0.5 * bus;
}

/// Algorithm bandwidth, GB/s.
double bandwidth_of(const Question& q, Algorithm algorithm, Protocol protocol) {
  switch (algorithm) {
    case Algorithm::ring:
      return ring_bus(q, protocol) * q.ranks() / q.steps();
    case Algorithm::tree:
      return 0.5 * tree_bus(q, protocol);
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return nvls_bandwidth(q, algorithm);
    case Algorithm::pat:
      return q.tuning.pat * ring_bus(q, Protocol::simple);
    case Algorithm::collnet_direct:
      return collnet_direct_bandwidth(q);
    case Algorithm::collnet_chain:
      return 0.5 * q.machine.ring.bus_in_node().value / giga;
    case Algorithm::p2p:
    case Algorithm::copy_engine:
    case Algorithm::node_aware:
      break;
  }
  throw BrokenPromise("an algorithm that NCCL does not choose");
}

/// From or to a root the data moves as a chain. Channels of one order hide all but one hop; the
/// search finds them alike on NVSwitch and between nodes with one member.
double chain_latency(const Question& q, Protocol protocol) {
  const auto hop = [&](Algorithm a) {
    return q.nodes() == 1 ? q.inside(a, protocol)
                          : q.tuning.latency[index_of(a)].net[index_of(protocol)];
  };
  const bool alike =
      q.nodes() == 1 ? q.machine.node.kind == topology::NodeKind::nvswitch : q.lone_ranks();
  if (alike) return hop(Algorithm::ring);
  return q.steps() * hop(protocol == Protocol::simple ? Algorithm::tree : Algorithm::ring);
}

/// Beyond the base.
double ring_latency(const Question& q, Protocol protocol) {
  if (q.to_or_from_root()) return chain_latency(q, protocol);
  double inside = q.inside(Algorithm::ring, protocol);
  if (q.nodes() == 1) return q.steps() * inside;
  // A hop inside the node is never shorter than the work of posting to the network beside it.
  const double post =
      (q.machine.node.cpu == "amd" ? 2.0 : 1.0) * (protocol == Protocol::simple ? 3 : 1);
  if (q.tuning.posts_to_network) inside = std::max(inside, post);
  const auto n = static_cast<double>(q.nodes());
  double crossings = n - 1;
  if (q.all_reduce()) crossings = q.tuning.all_reduce_counts_all_nodes ? 2 * n : 2 * (n - 1);
  return (q.steps() - crossings) * inside + crossings * q.between(Algorithm::ring, protocol);
}

double latency_of(const Question& q, Algorithm algorithm, Protocol protocol) {
  const double base = q.tuning.latency[index_of(algorithm)].base[index_of(protocol)];
  if (algorithm == Algorithm::ring) return base + ring_latency(q, protocol);
  const double inside = q.inside(algorithm, protocol);
  const double between = q.between(algorithm, protocol);
  const double levels = std::floor(std::log2(static_cast<double>(q.nodes())));
  const double others = q.per_node() - 1;
  switch (algorithm) {
    case Algorithm::tree:
      return base + 2 * (others * inside + levels * between);
    case Algorithm::nvls:
      return base + inside + (q.nodes() > 1 ? between : 0.0);
    case Algorithm::nvls_tree:
      return base + inside + 2 * levels * between;
    case Algorithm::collnet_direct:  // 0.4 us for each further member that a head serves in turn
      return base + 2 * (std::min(1.0, others) * inside + 0.4 * others) + between;
    case Algorithm::collnet_chain:
      return base + 2 * others * inside + between;
    case Algorithm::pat:
      return base + levels * between / 3.5 + 2.8 * q.ranks();
    case Algorithm::ring:
    case Algorithm::p2p:
    case Algorithm::copy_engine:
    case Algorithm::node_aware:
      break;
  }
  throw BrokenPromise("an algorithm without a latency");
}

/// Trees reach only a share of their bandwidth at medium sizes.
double tree_share(const Question& q, Algorithm algorithm, Protocol protocol) {
  const bool corrected =
      algorithm == Algorithm::tree ||
      (algorithm == Algorithm::nvls_tree && q.tuning.nvls_tree_corrected_on_blackwell &&
       q.generation() == NcclGeneration::blackwell);
  if (!corrected) return 1.0;
  const auto& shares = q.tuning.tree_correction[index_of(protocol)];
  const auto units = static_cast<std::uint64_t>(std::max<std::int64_t>(1, q.call.bytes.value / 64));
  const auto index = static_cast<std::size_t>(std::bit_width(units) - 1);
  return index < shares.size() ? shares[index] : 1.0;
}

/// Long Ring messages across nodes pay more per hop: "plateau" of tuning.cc.
double ring_plateau(const Question& q, Algorithm algorithm, Protocol protocol) {
  if (algorithm != Algorithm::ring || protocol != Protocol::simple || !q.all_reduce() ||
      q.nodes() == 1)
    return 1;
  if (!q.tuning.plateau_by_channel)
    return q.call.bytes.value >= q.machine.shape.ranks * 4096 ? 1.9 : 1;
  if (q.call.bytes.value / (q.machine.ring.ctas * q.machine.shape.ranks) < 64) return 1;
  return q.generation() < NcclGeneration::ampere ? 1.9 : 1.4;
}

/// How often a group of calls pays the latency. All channels take one call each at a time: Ring
/// pays for every such row, the others once per batch of rows. A batch holds 1,024 bytes of work
/// descriptions of 96 bytes (device.h of 2.27; those of other versions differ by a few bytes).
double latency_count(const Question& q, Algorithm algorithm) {
  constexpr std::int64_t calls_per_batch = 10;
  const std::int64_t rows = ceil_div(q.call.grouped, q.machine.ring.ctas);
  return static_cast<double>(algorithm == Algorithm::ring ? rows : ceil_div(rows, calls_per_batch));
}

/// fp8 sums along a ring of more than 8 ranks lose too much: NCCL keeps it for last.
double handicap_of(const Question& q, Algorithm algorithm) {
  const bool lossy = q.call.sums_fp8() && algorithm == Algorithm::ring && q.machine.shape.ranks > 8;
  return lossy ? q.tuning.fp8_ring_factor : 1.0;
}

}  // namespace

bool NcclCall::is_gather() const {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

bool is_reduction(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::reduce;
}

std::int64_t ring_steps(CollectiveKind kind, std::int64_t ranks) {
  if (kind == CollectiveKind::all_reduce) return 2 * (ranks - 1);
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) return ranks;
  return ranks - 1;
}

std::int64_t network_heads(const NcclMachine& machine) {
  return std::llround(machine.nic_bandwidth / machine.node.nic);
}

NcclOption nccl_option(const NcclTuning& tuning, const NcclMachine& machine, const NcclCall& call,
                       Algorithm algorithm, Protocol protocol) {
  const Question q{tuning, machine, call};
  const double bandwidth =
      bandwidth_of(q, algorithm, protocol) * tree_share(q, algorithm, protocol);
  const double latency = latency_of(q, algorithm, protocol) * ring_plateau(q, algorithm, protocol) *
                         latency_count(q, algorithm);
  const double estimate_us = latency + static_cast<double>(call.bytes.value) / (1000 * bandwidth);
  return {.algorithm = algorithm,
          .protocol = protocol,
          .estimate = to_duration(estimate_us * 1e-6),
          .bandwidth = BytesPerSecond(bandwidth * giga),
          .handicap = handicap_of(q, algorithm)};
}

}  // namespace stepcast::sim
