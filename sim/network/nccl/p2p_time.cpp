// Send/receive and AlltoAll, which is made of them; and the memory that any collective moves.
#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "sim/network/nccl/chunks.hpp"
#include "sim/network/nccl/time.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

// A send and its receive are a task of their own; NCCL runs 8 of them at a time (enqueue.cc). Rows
// of 8 GPUs show the cost of the first 8; what each further one costs is not measured: taken as the
// time that a proxy needs to post a message (NCCL's net overhead, 1 us).
constexpr double tasks_at_once = 8.0;
constexpr double further_task = 1e-6;

/// To one peer while `members` of the node send, achieved.
double nvlink_to_peer(const topology::NodeSpec& node, std::int64_t members,
                      const GenerationConstants& g) {
  if (nvlinks_within(node, 2) == 0) {
    const double pcie = 0.76 * node.pcie.value;  // NCCL: 12 of 15.75 GB/s
    const auto hop = hop_through_host(node, members);
    return hop ? std::min(pcie, hop->value) : pcie;
  }
  if (node.kind == topology::NodeKind::nvswitch) return node.gpu.nvlink.value * g.p2p_nvlink;
  return node.nvlink_per_link.value * g.p2p_nvlink;  // neighbours share one link at least
}

NcclTime pair_time(const NcclMachine& machine, double size, const NetworkConstants& c) {
  const GenerationConstants& g = c.of(machine.node.gpu.architecture.nccl);
  NcclTime time;
  time.hops = 1;
  double bandwidth = 0.0;
  if (machine.shape.nodes > 1) {
    time.network_hops = 1;
    time.start = c.shared.p2p_network_start;
    time.hop_between_nodes = c.extra_hop(machine.node.network, machine.node.gpu.architecture.nccl);
    const double nics =
        machine.nic_bandwidth.value / static_cast<double>(machine.shape.ranks_per_node);
    bandwidth = nics * c.shared.nic_p2p * c.of(machine.node.network).bandwidth;
  } else {
    time.start = g.p2p_start;
    time.fill = to_duration(seconds(g.p2p_ramp) * std::min(1.0, size / slot_bytes));
    bandwidth = nvlink_to_peer(machine.node, machine.shape.ranks_per_node, g);
  }
  time.bandwidth = BytesPerSecond(bandwidth);
  time.transfer = to_duration(size / bandwidth);
  return time;
}

Duration all_to_all_start(double ranks, const GenerationConstants& g) {
  if (g.all_to_all_rank > Duration{})
    return g.p2p_start + to_duration(seconds(g.all_to_all_rank) * (ranks - 1));
  return to_duration(seconds(g.p2p_start) * std::min(ranks, tasks_at_once) +
                     further_task * std::max(0.0, ranks - tasks_at_once));
}

/// Every member sends 1/n of its share to each other one, S/n in all but for its own.
NcclTime all_to_all_time(const NcclMachine& machine, double size, const NetworkConstants& c) {
  const GenerationConstants& g = c.of(machine.node.gpu.architecture.nccl);
  const auto n = static_cast<double>(machine.shape.ranks);
  const auto p = static_cast<double>(machine.shape.ranks_per_node);
  NcclTime time;
  time.hops = 1;
  time.start = g.start + all_to_all_start(n, g);
  const double inside = machine.node.kind == topology::NodeKind::nvswitch
                            ? machine.node.gpu.nvlink.value * g.all_to_all
                            : nvlink_to_peer(machine.node, machine.shape.ranks_per_node, g);
  // Under NVSwitches what goes to another rail passes the member on that rail (PXN).
  const bool passed_on = machine.node.kind == topology::NodeKind::nvswitch;
  const double to_rails = passed_on ? (n - p) * (p - 1) / p : 0.0;
  double transfer = size / n * (p - 1 + to_rails) / inside;
  if (machine.shape.nodes > 1) {
    time.network_hops = 1;
    time.hop_between_nodes = c.shared.p2p_network_start +
                             c.extra_hop(machine.node.network, machine.node.gpu.architecture.nccl);
    const double nic =
        machine.own_nics.value / p * c.shared.nic_p2p * c.of(machine.node.network).bandwidth;
    transfer = std::max(transfer, size / n * (n - p) / nic);
  }
  time.bandwidth = BytesPerSecond(size / transfer);
  time.transfer = to_duration(transfer);
  return time;
}

}  // namespace

NcclTime point_to_point_time(const NcclMachine& machine, CollectiveKind kind, Bytes bytes,
                             const NetworkConstants& constants) {
  const auto size = static_cast<double>(bytes.value);
  return kind == CollectiveKind::send_receive ? pair_time(machine, size, constants)
                                              : all_to_all_time(machine, size, constants);
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
