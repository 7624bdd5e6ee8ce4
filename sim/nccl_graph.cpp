#include "sim/nccl_graph.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using topology::Architecture;
using topology::NodeKind;
using topology::NodeSpec;

constexpr double giga = 1e9;

// NCCL src/graph/topo.h: what the search takes one NVLink for, GB/s; search.cc: its candidate
// speeds per channel. Read at v2.28.9-1.
constexpr double planned_nvlink(Architecture architecture) {
  switch (architecture) {
    case Architecture::volta:
    case Architecture::ampere:
      return 20.0;
    case Architecture::hopper:
      return 20.6;
    case Architecture::blackwell:
      return 40.1;
  }
  throw BrokenPromise("a GPU generation without a planned NVLink speed");
}

/// One link as built, per direction, GB/s (HARDWARE 2: 25 up to NVLink 4, 50 for NVLink 5).
constexpr double built_nvlink(Architecture architecture) {
  return architecture == Architecture::blackwell ? 50.0 : 25.0;
}

/// How much faster the links of a what-if node are than those of its generation; 1 within 2 %.
double nvlink_speedup(const NodeSpec& node) {
  const double link = node.kind == NodeKind::nvswitch
                          ? node.gpu.nvlink.value / static_cast<double>(node.gpu.nvlink_links)
                          : node.nvlink_per_link.value;
  const double ratio = link / giga / built_nvlink(node.gpu.architecture);
  return std::abs(ratio - 1.0) < 0.02 ? 1.0 : ratio;
}

constexpr std::array in_node_before_hopper{40., 30., 20., 18., 15., 12., 10.,
                                           9.,  7.,  6.,  5.,  4.,  3.};
constexpr std::array in_node_hopper{60., 50., 40., 30., 24., 20., 15., 12., 11., 6., 3.};
constexpr std::array between_before_hopper{48., 30., 28., 24., 20., 18., 15., 12., 10.,
                                           9.,  7.,  6.,  5.,  4.,  3.,  2.4, 1.2};
constexpr std::array between_hopper{48., 45., 42., 40., 30., 24., 22., 20., 17.5, 15., 12., 6., 3.};

bool hopper_or_later(const NodeSpec& node) { return node.gpu.architecture >= Architecture::hopper; }

std::span<const double> in_node_speeds(const NodeSpec& node) {
  if (hopper_or_later(node)) return in_node_hopper;
  return in_node_before_hopper;
}

/// The largest candidate that is not above `limit`; the limit itself below all of them.
double fastest_within(std::span<const double> candidates, double limit) {
  for (const double candidate : candidates)
    if (candidate <= limit * 1.001) return candidate;
  return limit;
}

/// NVLink (or PCIe) bandwidth of one member to the others, as the search plans it, GB/s.
double planned_port(const NodeSpec& node, std::int64_t members) {
  const std::int64_t links = nvlinks_within(node, members);
  if (links == 0) return 0.76 * node.pcie.value / giga;  // 12 of 15.75 GB/s on PCIe 3.0 x16
  return planned_nvlink(node.gpu.architecture) * nvlink_speedup(node) * static_cast<double>(links);
}

/// DGX-1V 6 x 20, DGX A100 12 x 20, DGX H100 12 x 30.
ChannelGraph ring_in_node(const NodeSpec& node, std::int64_t members) {
  const double port = planned_port(node, members);
  const double channel = hopper_or_later(node) ? 30.0 : 20.0;
  ChannelGraph ring;
  ring.channels = std::max<std::int64_t>(1, static_cast<std::int64_t>(port / channel * 1.001));
  ring.in_node = BytesPerSecond(std::min(channel, port) * giga);
  ring.between_nodes = ring.in_node;
  ring.ctas = 2 * ring.channels;  // connect.cc doubles the channels after the search
  return ring;
}

/// NICs that `members` GPUs of a node reach as their own: one each, or a shared one.
std::int64_t nics_used(const NodeSpec& node, std::int64_t members) {
  expects(node.nics > 0, "a group over several nodes needs NICs");
  return std::max<std::int64_t>(1, members * node.nics / node.gpus);
}

/// DGX A100 8 x 24, DGX H100 8 x 48 with all GPUs; one channel and its own NIC with one.
ChannelGraph ring_between_nodes(const NodeSpec& node, std::int64_t members) {
  const auto candidates = hopper_or_later(node) ? std::span<const double>(between_hopper)
                                                : std::span<const double>(between_before_hopper);
  const double nic = node.nic.value / giga;
  const std::int64_t per_nic = nic > 1.5 * candidates.front() ? 2 : 1;
  ChannelGraph ring;
  ring.channels = per_nic * nics_used(node, members);
  double between = fastest_within(candidates, nic / static_cast<double>(per_nic));
  double inside = between;
  if (members > 1) {
    // A ring enters a node at one GPU and leaves at another: p - 1 of its p members send inside.
    const auto p = static_cast<double>(members);
    const double room =
        planned_port(node, members) * p / ((p - 1) * static_cast<double>(ring.channels));
    inside = fastest_within(in_node_speeds(node), room);
    between = std::min(between, inside);
  }
  ring.in_node = BytesPerSecond(inside * giga);
  ring.between_nodes = BytesPerSecond(between * giga);
  ring.ctas = 2 * ring.channels;
  return ring;
}

/// One head per member; 8 x 40 on a whole DGX H100, always 16 kernel channels (nvls.cc:148).
ChannelGraph nvls_graph(const NodeSpec& node, const GroupShape& shape, const ChannelGraph& ring) {
  const auto p = static_cast<double>(shape.ranks_per_node);
  ChannelGraph nvls;
  nvls.channels = shape.ranks_per_node;
  const double head = fastest_within(in_node_hopper, planned_port(node, shape.ranks_per_node) / p);
  nvls.in_node = BytesPerSecond(head * giga);
  nvls.between_nodes = shape.nodes > 1 ? ring.bus_between_nodes() / p : nvls.in_node;
  nvls.ctas = 16;
  return nvls;
}

}  // namespace

std::int64_t nvlinks_within(const NodeSpec& node, std::int64_t members) {
  if (node.kind == NodeKind::pcie || node.gpu.nvlink_links == 0) return 0;
  if (node.kind == NodeKind::nvswitch) return node.gpu.nvlink_links;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const auto count = static_cast<std::size_t>(std::min(members, node.gpus));
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t links = 0;
    for (std::size_t j = 0; j < count; ++j) links += node.nvlinks[i][j];
    least = std::min(least, links);
  }
  return least;
}

NcclMachine nccl_machine(const NodeSpec& node, const GroupShape& shape) {
  expects(shape.ranks >= shape.nodes && shape.nodes >= 1 && shape.ranks_per_node >= 1,
          "a group has at least one rank on each of its nodes");
  NcclMachine machine;
  machine.node = node;
  machine.shape = shape;
  const std::int64_t members = shape.ranks_per_node;
  machine.nvlink = members == 1 || nvlinks_within(node, members) > 0;
  if (shape.nodes == 1) {
    machine.ring = ring_in_node(node, std::max<std::int64_t>(2, members));
  } else {
    machine.ring = ring_between_nodes(node, members);
    machine.nic_bandwidth = node.nic * static_cast<double>(nics_used(node, members));
  }
  if (node.kind == NodeKind::nvswitch && hopper_or_later(node) && members > 1)
    machine.nvls = nvls_graph(node, shape, machine.ring);
  return machine;
}

}  // namespace stepcast::sim
