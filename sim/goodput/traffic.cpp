#include "sim/goodput/traffic.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

/// Over the tier's links, one direction.
Duration time_over_links(const Scenario& s, const CheckpointTier& tier,
                         const workloads::CheckpointSize& size) {
  const Bytes node_bytes = size.rank * std::min(s.gpus, s.node.gpus);
  BytesPerSecond per_node = tier.per_node;
  if (per_node.value == 0) per_node = s.node.nic * static_cast<double>(s.node.nics);
  if (per_node.value == 0)
    throw InputError(s.origin, "checkpoints to " + tier.to + " have no link: the node has no NIC",
                     "per_node in [[failures.checkpoint]]");
  const Duration at_node = node_bytes / per_node;
  if (tier.bandwidth.value == 0) return at_node;
  return std::max(at_node, size.total / tier.bandwidth);
}

}  // namespace

CheckpointCost checkpoint_cost(const Scenario& s, const CheckpointTier& tier,
                               const workloads::CheckpointSize& size) {
  const bool stated = tier.blocking && tier.load && !tier.asynchronous;
  const Duration written = stated ? Duration{} : time_over_links(s, tier, size);
  const Duration copied = size.rank / s.node.pcie;
  const Duration blocking =
      tier.blocking.value_or(tier.asynchronous ? copied : std::max(copied, written));
  return {.every_s = tier.every ? seconds(*tier.every) : 0.0,
          .blocking_s = seconds(blocking),
          .behind_s = tier.asynchronous ? seconds(written) : 0.0,
          .load_s = seconds(tier.load.value_or(written)),
          .survives = tier.survives};
}

}  // namespace stepcast::sim
