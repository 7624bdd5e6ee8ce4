// A step of very many GPUs, folded from the start: what engine::fold() makes of the bound step,
// without the tables of all ranks, communicators and links. Only where columns of nodes repeat.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/run/simulate.hpp"

namespace stepcast::sim {

struct FoldedStep {
  StepSystem step;  // its system is the folded one; no layout, no links by their names
  std::vector<std::int64_t> multiplicity;  // as of engine::Fold
};

/// Whether the whole is asked for: every rank, a difference between ranks, a comparison.
bool asks_for_the_whole(const Scenario&);

/// None where the plan or the fabric is not one that is known to repeat: then bind and fold.
std::optional<FoldedStep> fold_from_the_start(const Scenario&, const workloads::StepProgram&,
                                              const Network&, const KernelModel&);

/// As simulate() of what was bound.
void simulate_folded(StepReport& report, FoldedStep folded);

}  // namespace stepcast::sim
