#include "sim/network/search/graph.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/network/search/ring_search.hpp"
#include "sim/network/search/wires.hpp"

namespace stepcast::sim {
namespace {

using topology::NodeKind;
using topology::NodeSpec;

/// connect.cc: every channel twice (one half of the double tree each), at most 64; few wide ones of
/// several Hopper nodes four times.
std::int64_t kernel_channels(const NodeSpec& node, const NodeChannels& found, bool several_nodes) {
  std::int64_t channels = std::min<std::int64_t>(64, 2 * found.count());
  if (several_nodes && hopper_or_later(node) && found.ring_speed.value > 45e9 && channels < 16)
    channels *= 2;
  return channels;
}

std::int64_t nics_used(const NodeChannels& found) {
  std::set<std::int64_t> nics;
  for (const NodeChannel& ring : found.rings) nics.insert(ring.nic_in);
  return static_cast<std::int64_t>(nics.size());
}

/// NICs that the first `members` GPUs of a node are closest to.
std::int64_t nics_beside(const NodeSpec& node, std::int64_t members) {
  std::set<std::int64_t> nics;
  for (std::int64_t g = 0; g < members; ++g) nics.insert(g * node.nics / node.gpus);
  return static_cast<std::int64_t>(nics.size());
}

/// One head per member; 8 x 40 on a whole DGX H100, always 16 kernel channels (nvls.cc:148).
ChannelGraph nvls_graph(const NodeSpec& node, const GroupShape& shape, const ChannelGraph& ring) {
  ChannelGraph nvls;
  nvls.channels = std::min(most_nvls_heads, shape.ranks_per_node);
  const auto p = static_cast<double>(nvls.channels);
  nvls.in_node = nvls_head_speed(node, nvls.channels);
  nvls.between_nodes = shape.nodes > 1 ? ring.bus_between_nodes() / p : nvls.in_node;
  nvls.ctas = 16;
  return nvls;
}

// Of the nominal bandwidth of a host's memory: what STREAM's triad reaches on servers of two
// sockets (recalled, 2026).
constexpr double host_memory_reach = 0.8;

}  // namespace

std::optional<BytesPerSecond> hop_through_host(const NodeSpec& node, std::int64_t members) {
  const bool meets = node.kind == NodeKind::pcie && !node.peer_access;
  if (!meets || !(node.host_memory.value > 0)) return std::nullopt;
  const std::int64_t sockets = std::max<std::int64_t>(1, node.sockets);
  const std::int64_t used = ceil_div(members * sockets, node.gpus);
  const double memory = node.host_memory.value * host_memory_reach * static_cast<double>(used) /
                        static_cast<double>(sockets);
  return BytesPerSecond(memory / (2.0 * static_cast<double>(members)));
}

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
  const bool several_nodes = shape.nodes > 1;
  const std::int64_t members = std::max<std::int64_t>(several_nodes ? 1 : 2, shape.ranks_per_node);
  std::vector<std::int64_t> gpus(static_cast<std::size_t>(members));
  std::iota(gpus.begin(), gpus.end(), 0);
  const NodeChannels found = search_channels(node, gpus, several_nodes);
  const std::int64_t ctas = kernel_channels(node, found, several_nodes);
  machine.nvlink = shape.ranks_per_node == 1 || found.reach != HopReach::pcie;
  machine.ring = {found.count(), found.ring_speed, found.ring_speed, ctas};
  machine.tree = {found.count(), found.chain_speed, found.ring_speed, ctas};
  machine.in_node_bus = machine.ring.bus_in_node();
  if (several_nodes && members > 1) {
    const NodeChannels alone = search_channels(node, gpus, false);
    machine.in_node_bus = alone.ring_speed * static_cast<double>(alone.count());
  }
  // Not what NCCL plans between sockets, which is far below what they carry.
  if (const auto hop = hop_through_host(node, members))
    machine.in_node_bus = std::min(*hop, BytesPerSecond(planned_pcie(node) * bytes_per_gigabyte));
  if (several_nodes) {  // a NIC takes in no more than its PCIe link gives
    const BytesPerSecond nic = std::min(node.nic, node.pcie);
    machine.nic_bandwidth = nic * static_cast<double>(nics_used(found));
    machine.own_nics = nic * static_cast<double>(nics_beside(node, members));
  }
  if (node.kind == NodeKind::nvswitch && hopper_or_later(node) && shape.ranks_per_node > 1)
    machine.nvls = nvls_graph(node, shape, machine.ring);
  return machine;
}

}  // namespace stepcast::sim
