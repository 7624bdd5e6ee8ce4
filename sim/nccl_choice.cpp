#include "sim/nccl_choice.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using topology::Architecture;
using workloads::CollectiveKind;

constexpr double giga = 1e9;

std::size_t index_of(Algorithm a) { return static_cast<std::size_t>(a); }
std::size_t index_of(Protocol p) { return static_cast<std::size_t>(p); }

/// One question to NCCL's model. Bandwidths in GB/s and latencies in us, as in its tables.
struct Question {
  const NcclTuning& tuning;
  const NcclMachine& machine;
  CollectiveKind kind;

  std::int64_t nodes() const { return machine.shape.nodes; }
  double ranks() const { return static_cast<double>(machine.shape.ranks); }
  double per_node() const { return ranks() / static_cast<double>(nodes()); }
  std::size_t row() const {
    return static_cast<std::size_t>(std::min<std::int64_t>(nodes(), 3) - 1);
  }
  double steps() const { return static_cast<double>(ring_steps(kind, machine.shape.ranks)); }
  double cap(const NcclCap& cap) const { return cap.row(machine.node.gpu.architecture)[row()]; }
  bool to_or_from_root() const {
    return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  }
  bool ring_only() const { return machine.shape.ranks_per_node == 1; }

  /// Across nodes tuning.cc picks the row by CPU: AMD or mixed, and everything else.
  double ll_cap() const {
    if (nodes() == 1) return cap(tuning.ll_bus);
    return (machine.node.cpu == "amd" ? tuning.ll_bus.ampere : tuning.ll_bus.volta)[row()];
  }
};

double ring_bus(const Question& q, Protocol protocol) {
  const ChannelGraph& ring = q.machine.ring;
  const double bus = (q.nodes() <= 2 ? ring.bus_in_node() : ring.bus_between_nodes()).value / giga;
  switch (protocol) {
    case Protocol::ll: {
      const bool one_node = q.nodes() == 1 && q.kind != CollectiveKind::all_reduce &&
                            q.kind != CollectiveKind::reduce;
      return std::min(bus * (one_node ? q.tuning.ring_ll_one_node : q.tuning.ring_ll), q.ll_cap());
    }
    case Protocol::ll128: {
      const double share =
          q.ring_only() ? q.tuning.ring_ll128_one_rank_per_node : q.tuning.ring_ll128;
      return std::min(bus * share,
                      static_cast<double>(ring.channels) * q.cap(q.tuning.ring_ll128_cap));
    }
    case Protocol::simple:
      return bus;
  }
  throw BrokenPromise("a protocol without a bandwidth");
}

double tree_bus(const Question& q, Protocol protocol) {
  const ChannelGraph& tree = q.machine.ring;
  const auto channels = static_cast<double>(tree.channels);
  double bus = (q.nodes() <= 2 ? tree.bus_in_node() : tree.bus_between_nodes()).value / giga;
  bus = std::min(0.92 * bus, channels * q.cap(q.tuning.tree_cap));
  if (protocol == Protocol::ll) return std::min(bus / 3.8, q.ll_cap());
  if (protocol == Protocol::ll128)
    return std::min(bus * (q.nodes() == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                    channels * q.cap(q.tuning.tree_ll128_cap));
  return bus;
}

/// Bus bandwidth of NVLS and NVLSTree before the ratio. Until 2.27 the plain channel speed; since
/// 2.28 what the switch reaches of it, (C-1)/C of the heads, both directions for AllReduce.
double nvls_bus(const Question& q, Algorithm algorithm) {
  const ChannelGraph& nvls = *q.machine.nvls;
  const auto heads = static_cast<double>(nvls.channels);
  double inside = nvls.in_node.value / giga;
  double between = nvls.between_nodes.value / giga;
  const bool since_2_28 = q.tuning.nvls_ratio == BusRatio::ring;
  if (since_2_28) {
    inside *= q.tuning.nvls_efficiency * (heads - 1) / heads;
    if (q.kind == CollectiveKind::all_reduce) inside *= 2;
  }
  if (q.nodes() == 1) return heads * inside;
  if (algorithm == Algorithm::nvls_tree && since_2_28 && q.nodes() <= 2) between *= 2;
  if (algorithm == Algorithm::nvls_tree && q.tuning.nvls_tree_halves_network && q.nodes() > 2)
    between /= 2;
  double bw = std::min(inside, between);
  if (const double cap = q.cap(q.tuning.nvls_tree_cap); cap > 0) bw = std::min(bw, cap);
  return heads * bw;
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

/// Algorithm bandwidth, GB/s.
double bandwidth_of(const Question& q, Algorithm algorithm, Protocol protocol) {
  switch (algorithm) {
    case Algorithm::ring:
      return ring_bus(q, protocol) * q.ranks() / q.steps();
    case Algorithm::tree:
      return 0.5 * tree_bus(q, protocol);
    case Algorithm::nvls:
    case Algorithm::nvls_tree: {
      const double bus = nvls_bus(q, algorithm);
      if (q.kind != CollectiveKind::all_reduce) return bus;  // not converted
      return bus * ratio_of(q, algorithm == Algorithm::nvls ? q.tuning.nvls_ratio
                                                            : q.tuning.nvls_tree_ratio);
    }
    case Algorithm::pat:
      return q.tuning.pat * ring_bus(q, Protocol::simple);
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
    case Algorithm::p2p:
      return 0.0;  // CollNet needs a SHARP fabric
  }
  throw BrokenPromise("an algorithm without a bandwidth");
}

double ring_latency(const Question& q, Protocol protocol) {
  const std::size_t p = index_of(protocol);
  const NcclLatency& ring = q.tuning.latency[index_of(Algorithm::ring)];
  const NcclLatency& tree = q.tuning.latency[index_of(Algorithm::tree)];
  double inside = (q.machine.nvlink ? ring.nvlink : ring.pci)[p];
  if (q.nodes() == 1) {
    if (q.to_or_from_root()) return ring.base[p] + inside;
    return ring.base[p] + q.steps() * inside;
  }
  const double between = (q.ring_only() ? tree.net : ring.net)[p];
  if (q.to_or_from_root()) return ring.base[p] + between;
  // A hop inside the node is never shorter than the work of posting to the network beside it.
  const double post =
      (q.machine.node.cpu == "amd" ? 2.0 : 1.0) * (protocol == Protocol::simple ? 3 : 1);
  inside = std::max(inside, post);
  const auto n = static_cast<double>(q.nodes());
  double crossings = n - 1;
  if (q.kind == CollectiveKind::all_reduce)
    crossings = q.tuning.all_reduce_counts_all_nodes ? 2 * n : 2 * (n - 1);
  crossings = std::min(crossings, q.steps());
  return ring.base[p] + (q.steps() - crossings) * inside + crossings * between;
}

double latency_of(const Question& q, Algorithm algorithm, Protocol protocol) {
  const std::size_t p = index_of(protocol);
  if (algorithm == Algorithm::ring) return ring_latency(q, protocol);
  const NcclLatency& row = q.tuning.latency[index_of(algorithm)];
  const double inside = (q.machine.nvlink ? row.nvlink : row.pci)[p];
  const double levels = std::floor(std::log2(static_cast<double>(q.nodes())));
  switch (algorithm) {
    case Algorithm::tree:
      return row.base[p] + 2 * ((q.per_node() - 1) * inside + levels * row.net[p]);
    case Algorithm::nvls:
      return row.base[p] + inside + (q.nodes() > 1 ? row.net[p] : 0.0);
    case Algorithm::nvls_tree:
      return row.base[p] + inside + 2 * levels * row.net[p];
    case Algorithm::pat:
      return row.base[p] + levels * row.net[p] / 3.5 + 2.8 * q.ranks();
    default:
      return row.base[p];
  }
}

bool available(const Question& q, Algorithm algorithm, Protocol protocol) {
  if (!q.tuning.serves_kind(q.kind, algorithm)) return false;
  if (protocol == Protocol::ll128 && (!q.machine.nvlink || !q.machine.node.gpu_direct))
    return false;
  const bool all_protocols = algorithm == Algorithm::ring || algorithm == Algorithm::tree;
  if (!all_protocols && protocol != Protocol::simple) return false;
  switch (algorithm) {
    case Algorithm::ring:
      return true;
    case Algorithm::tree:
      return q.machine.shape.ranks > 1;
    case Algorithm::nvls:  // on several nodes only with SHARP
      return q.machine.nvls && q.nodes() == 1;
    case Algorithm::nvls_tree:
      return q.machine.nvls && q.nodes() > 1;
    case Algorithm::pat:
      return q.ring_only() && q.nodes() > 1;
    default:
      return false;
  }
}

/// Tree reaches only a share of its bandwidth at medium sizes.
double tree_share(const NcclTuning& tuning, Protocol protocol, Bytes bytes) {
  const auto& shares = tuning.tree_correction[index_of(protocol)];
  const auto units = static_cast<std::uint64_t>(std::max<std::int64_t>(1, bytes.value / 64));
  const auto index = static_cast<std::size_t>(std::bit_width(units) - 1);
  return index < shares.size() ? shares[index] : 1.0;
}

/// Long Ring messages across nodes pay more per hop: "plateau" of tuning.cc.
double ring_plateau(const Question& q, Protocol protocol, Bytes bytes) {
  if (protocol != Protocol::simple || q.kind != CollectiveKind::all_reduce || q.nodes() == 1)
    return 1;
  const double per_chunk =
      static_cast<double>(bytes.value) / (static_cast<double>(q.machine.ring.channels) * q.ranks());
  if (per_chunk < 64) return 1;
  return q.machine.node.gpu.architecture < Architecture::ampere ? 1.9 : 1.4;
}

NcclOption option_of(const Question& q, Algorithm algorithm, Protocol protocol, Bytes bytes) {
  double bandwidth = bandwidth_of(q, algorithm, protocol);
  double latency = latency_of(q, algorithm, protocol);
  if (algorithm == Algorithm::tree) bandwidth *= tree_share(q.tuning, protocol, bytes);
  if (algorithm == Algorithm::ring) latency *= ring_plateau(q, protocol, bytes);
  const double estimate_us = latency + static_cast<double>(bytes.value) / (1000 * bandwidth);
  return {algorithm, protocol, to_duration(estimate_us * 1e-6), BytesPerSecond(bandwidth * giga)};
}

}  // namespace

std::int64_t ring_steps(CollectiveKind kind, std::int64_t ranks) {
  if (kind == CollectiveKind::all_reduce) return 2 * (ranks - 1);
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) return ranks;
  return ranks - 1;
}

std::vector<NcclOption> nccl_options(const NcclTuning& tuning, const NcclMachine& machine,
                                     CollectiveKind kind, Bytes bytes) {
  expects(machine.shape.ranks > 1, "a collective of one rank moves nothing");
  const Question q{tuning, machine, kind};
  std::vector<NcclOption> options;
  for (const auto& [name, algorithm] : algorithm_names)
    for (const auto& [protocol_name, protocol] : protocol_names)
      if (available(q, algorithm, protocol))
        options.push_back(option_of(q, algorithm, protocol, bytes));
  return options;
}

NcclOption nccl_choice(const NcclTuning& tuning, const NcclMachine& machine, CollectiveKind kind,
                       Bytes bytes, const NcclOverrides& overrides) {
  const std::vector<NcclOption> options = nccl_options(tuning, machine, kind, bytes);
  expects(!options.empty(), "an algorithm for every collective that NCCL chooses for");
  const NcclOption* best = nullptr;
  const auto consider = [&](bool pinned) {
    for (const NcclOption& option : options) {
      if (pinned && overrides.algorithm && option.algorithm != *overrides.algorithm) continue;
      if (pinned && overrides.protocol && option.protocol != *overrides.protocol) continue;
      if (best == nullptr || option.estimate < best->estimate) best = &option;
    }
  };
  consider(true);
  if (best == nullptr) consider(false);
  return *best;
}

std::int64_t nccl_channels(const NcclMachine& machine, Algorithm algorithm, Protocol protocol,
                           Bytes bytes) {
  if (algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree) return machine.nvls->ctas;
  // enqueue.cc: threads per channel times bytes per thread that are worth one channel.
  const std::int64_t threads = protocol == Protocol::ll128 ? 640 : 512;
  std::int64_t threshold = protocol == Protocol::simple ? 64 : 8;
  if (protocol == Protocol::ll && algorithm == Algorithm::ring) threshold *= machine.shape.ranks;
  return std::clamp<std::int64_t>(bytes.value / (threads * threshold), 1, machine.ring.ctas);
}

}  // namespace stepcast::sim
