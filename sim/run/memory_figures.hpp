// The three figures of a scenario's memory, and whether its plan fits.
#pragma once

#include <optional>
#include <string>

#include "engine/check.hpp"
#include "sim/scenario/scenario.hpp"
#include "workloads/memory/figures.hpp"

namespace stepcast::sim {

workloads::MemoryFigures memory_figures(const Scenario& scenario);
/// Without a replay of the allocator's work: what no allocator can do without.
workloads::MemoryFigures fullest_memory(const Scenario& scenario);
/// The same where plan and batch are others.
workloads::MemoryFigures fullest_memory(const Scenario& scenario, const workloads::ParallelPlan&,
                                        const workloads::Batch&);
/// The same with one, unless they have it.
void replay(workloads::MemoryFigures& figures, const Scenario& scenario);
/// Of a pipeline stage, with one.
workloads::MemoryFigures memory_of_stage(const Scenario& scenario, std::int64_t stage);

/// Whether a GPU has what the fullest rank needs.
bool fits(const Scenario& scenario);
/// The same of figures that fullest_memory() gave, or memory_figures().
bool fits(const Scenario& scenario, const workloads::MemoryFigures& figures);
/// Whether they come to no more than `room`; as far as they tell without a replay.
bool fits_in(Bytes room, const Scenario& scenario, const workloads::MemoryFigures& figures);
workloads::Fit fit_in(Bytes room, const Scenario& scenario,
                      const workloads::MemoryFigures& figures);

/// Memory is what a plan lacks.
class OutOfMemory : public NoFeasiblePlan {
 public:
  OutOfMemory(const std::string& what, Bytes over) : NoFeasiblePlan(what), over_(over) {}
  /// Of what the fullest rank needs, the part that its GPU does not have.
  Bytes over() const { return over_; }

 private:
  Bytes over_;
};

/// Of a plan that fits: that PyTorch's allocator will have to give blocks back; else empty.
std::string reserve_warning(const Scenario& scenario, const workloads::MemoryFigures& figures);

}  // namespace stepcast::sim
