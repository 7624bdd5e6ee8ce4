#include "sim/network/path_latency.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "topology/wires.hpp"

namespace stepcast::sim {
namespace {

using topology::LinkKind;
using workloads::CollectiveKind;

Duration difference(Duration value, Duration reference, const std::string& name) {
  return name.empty() ? Duration{} : value - reference;
}

/// Times that bytes cross the NVSwitch beside the hops: NVLS fetches sums from it and sends them to
/// all; AllGather and ReduceScatter do one of the two.
std::int64_t switch_passes(Algorithm algorithm, CollectiveKind kind) {
  if (algorithm != Algorithm::nvls && algorithm != Algorithm::nvls_tree) return 0;
  return kind == CollectiveKind::all_reduce ? 2 : 1;
}

}  // namespace

PathLatency::PathLatency(const topology::Cluster& cluster, const topology::Router& router)
    : cluster_(cluster), router_(router) {
  const topology::NodeSpec& node = cluster.node();
  const topology::NodeReference& of_node = node.reference;
  nvlink_ = difference(node.nvlink_latency, of_node.nvlink_latency, of_node.name);
  nic_ = difference(node.nic_latency, of_node.nic_latency, of_node.name);
  pcie_ = difference(node.pcie_latency, of_node.pcie_latency, of_node.name);
  socket_ = difference(node.socket_latency, of_node.socket_latency, of_node.name);
  const topology::FabricSpec& fabric = cluster.fabric();
  const topology::FabricReference& of_fabric = fabric.reference;
  switch_ = difference(fabric.switch_latency, of_fabric.switch_latency, of_fabric.name);
  cable_ = difference(fabric.cable_latency, of_fabric.cable_latency, of_fabric.name);
  for (const Duration one : {nvlink_, nic_, pcie_, socket_, switch_, cable_})
    differs_ = differs_ || one != Duration{};
}

/// The differences of all that the path crosses, as the links' own latencies add up.
Duration PathLatency::of_path(topology::DeviceId from, topology::DeviceId to) const {
  Duration sum{};
  const topology::Path path = router_.path(from, to, 0);
  for (const topology::LinkId id : path) switch (topology::link_of(cluster_, id).kind) {
      case LinkKind::nvlink:
        sum += nvlink_;
        break;
      case LinkKind::pcie:
        sum += pcie_;
        break;
      case LinkKind::socket:
        sum += socket_;
        break;
      case LinkKind::injection:
        sum += nic_ + cable_;
        break;
      case LinkKind::fabric:
        sum += cable_;
        break;
    }
  return sum + topology::switches_on(cluster_, path) * switch_;
}

/// Mean over the hops of a ring over the first members of a node.
Duration PathLatency::in_node(const GroupShape& shape) const {
  const std::int64_t members = std::max<std::int64_t>(2, shape.ranks_per_node);
  double sum = 0.0;
  for (std::int64_t g = 0; g < members; ++g)
    sum += seconds(of_path(cluster_.gpu(g), cluster_.gpu((g + 1) % members)));
  return to_duration(sum / static_cast<double>(members));
}

Duration PathLatency::between_nodes(const GroupShape& shape, bool around_a_ring) const {
  const auto first_gpu = [&](std::int64_t at) {
    const std::int64_t node = std::min(at * shape.node_stride, cluster_.num_nodes() - 1);
    return cluster_.gpu(node * cluster_.node().gpus);
  };
  double sum = 0.0;
  Duration farthest{};
  for (std::int64_t at = 1; at < shape.nodes; ++at) {
    sum += seconds(of_path(first_gpu(at - 1), first_gpu(at)));
    const Duration from_first = of_path(first_gpu(0), first_gpu(at));
    if (std::chrono::abs(from_first) > std::chrono::abs(farthest)) farthest = from_first;
  }
  if (!around_a_ring) return farthest;
  sum += seconds(of_path(first_gpu(shape.nodes - 1), first_gpu(0)));
  return to_duration(sum / static_cast<double>(shape.nodes));
}

CollectiveTime PathLatency::added_to(CollectiveTime time, CollectiveKind kind, Bytes bytes,
                                     const GroupShape& shape) const {
  if (!differs_ || time.duration == Duration{}) return time;
  const bool ring = time.algorithm == Algorithm::ring || kind == CollectiveKind::send_receive;
  time.path_hops_in_node = time.hops - time.network_hops + switch_passes(time.algorithm, kind);
  if (time.path_hops_in_node > 0) time.path_in_node = in_node(shape);
  if (time.network_hops > 0) time.path_between_nodes = between_nodes(shape, ring);
  const double beyond = static_cast<double>(time.path_hops_in_node) * seconds(time.path_in_node) +
                        static_cast<double>(time.network_hops) * seconds(time.path_between_nodes);
  if (beyond == 0.0) return time;
  const Duration before = time.duration;
  // Shorter wires save what a hop has, not more.
  time.latency = std::max(Duration{}, time.latency + to_duration(beyond));
  time.duration = time.latency + time.transfer;
  time.memory_traffic = time.memory_traffic * (seconds(before) / seconds(time.duration));
  time.algbw = bytes / time.duration;
  time.busbw = time.algbw * bus_factor(kind, shape.ranks);
  time.provenance = without_measurements_of_its_own(time.provenance);
  return time;
}

}  // namespace stepcast::sim
