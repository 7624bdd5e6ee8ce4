#include "sim/network/links/fabric_bound.hpp"

#include <algorithm>

#include "topology/wires.hpp"

namespace stepcast::sim {

FabricLoad fabric_load(const std::vector<LinkLoad>& loads, const topology::Cluster& cluster) {
  using topology::LinkKind;
  const double nic_alone = std::min(cluster.node().nic, cluster.node().pcie).value;
  FabricLoad out;
  for (const LinkLoad& load : loads) {
    const topology::Link link = topology::link_of(cluster, load.link);
    // The cable of a NIC is the fabric's.
    if (link.kind == LinkKind::injection)
      out.nic = std::max(out.nic, load.bytes_per_byte / nic_alone);
    if (link.kind == LinkKind::injection || link.kind == LinkKind::fabric)
      out.fabric = std::max(out.fabric, load.bytes_per_byte / link.bandwidth.value);
  }
  return out;
}

CollectiveTime bound_by_fabric(CollectiveTime time, const FabricLoad& load, Bytes bytes,
                               double bus_factor) {
  // Weights are rounded up to 1/1024: a full fabric is not a narrow one.
  if (load.nic == 0.0 || load.fabric <= load.nic * 1.002) return time;
  const Duration before = time.duration;
  const Duration transfer = to_duration(seconds(time.transfer) * load.fabric / load.nic);
  time.duration += transfer - time.transfer;
  time.transfer = transfer;
  time.memory_traffic = time.memory_traffic * (seconds(before) / seconds(time.duration));
  time.algbw = bytes / time.duration;
  time.busbw = time.algbw * bus_factor;
  time.provenance = without_measurements_of_its_own(time.provenance);
  return time;
}

}  // namespace stepcast::sim
