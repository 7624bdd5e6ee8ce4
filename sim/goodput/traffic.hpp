// Checkpoints as bytes over links.
#pragma once

#include "sim/goodput/process.hpp"
#include "sim/scenario/scenario.hpp"
#include "workloads/memory/memory.hpp"

namespace stepcast::sim {

/// What writing and reading at a tier costs; its period stays 0 where the scenario leaves it open.
/// Ranks copy to the host over PCIe, nodes write over the tier's links or their NICs, all of them
/// over the tier's own; the slowest decides. Training's own traffic at that time is not slowed.
/// Throws InputError where no link is known.
CheckpointCost checkpoint_cost(const Scenario&, const CheckpointTier&,
                               const workloads::CheckpointSize&);

}  // namespace stepcast::sim
