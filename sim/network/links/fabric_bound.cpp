#include "sim/network/links/fabric_bound.hpp"

#include <algorithm>

namespace stepcast::sim {

CollectiveTime bound_by_fabric(CollectiveTime time, workloads::CollectiveKind kind, Bytes bytes,
                               std::int64_t ranks, const std::vector<LinkLoad>& loads,
                               const topology::Cluster& cluster) {
  using topology::LinkKind;
  const double nic_alone = std::min(cluster.node().nic, cluster.node().pcie).value;
  double nic = 0.0, fabric = 0.0;  // seconds per byte of the collective, times one byte
  for (const LinkLoad& load : loads) {
    const topology::Link& link = cluster.links()[load.link];
    // The cable of a NIC is the fabric's.
    if (link.kind == LinkKind::injection) nic = std::max(nic, load.bytes_per_byte / nic_alone);
    if (link.kind == LinkKind::injection || link.kind == LinkKind::fabric)
      fabric = std::max(fabric, load.bytes_per_byte / link.bandwidth.value);
  }
  // Weights are rounded up to 1/1024: a full fabric is not a narrow one.
  if (nic == 0.0 || fabric <= nic * 1.002) return time;
  const Duration before = time.duration;
  const Duration transfer = to_duration(seconds(time.transfer) * fabric / nic);
  time.duration += transfer - time.transfer;
  time.transfer = transfer;
  time.memory_traffic = time.memory_traffic * (seconds(before) / seconds(time.duration));
  time.algbw = bytes / time.duration;
  time.busbw = time.algbw * bus_factor(kind, ranks);
  time.provenance = without_measurements_of_its_own(time.provenance);
  return time;
}

}  // namespace stepcast::sim
