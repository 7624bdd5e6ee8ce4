// The three figures of a scenario's memory, and whether its plan fits.
#pragma once

#include <optional>
#include <string>

#include "engine/check.hpp"
#include "sim/scenario/scenario.hpp"
#include "workloads/memory/figures.hpp"

namespace stepcast::sim {

workloads::MemoryFigures memory_figures(const Scenario& scenario);

/// The same as fits() of the figures, without them.
bool fits(const Scenario& scenario);

/// Memory is what a plan lacks.
class OutOfMemory : public NoFeasiblePlan {
 public:
  OutOfMemory(const std::string& what, Bytes over) : NoFeasiblePlan(what), over_(over) {}
  /// Of what the fullest rank needs, the part that its GPU does not have.
  Bytes over() const { return over_; }

 private:
  Bytes over_;
};

/// The GPU has what the fullest rank needs.
bool fits(const Scenario& scenario, const workloads::MemoryFigures& figures);

/// What a replay of the allocator's work cannot leave: where the parts of memory are further from
/// the card than this share, they decide. A law of tests/workloads holds a replay to the parts
/// within 6 %, FSDP's shards of gradients apart.
inline constexpr double replay_leaves = 0.25;
bool surely_fits(const Scenario& scenario, Bytes parts);
bool surely_too_much(const Scenario& scenario, Bytes parts);

/// Of a plan that fits: that PyTorch's allocator will have to give blocks back; else empty.
std::string reserve_warning(const Scenario& scenario, const workloads::MemoryFigures& figures);

}  // namespace stepcast::sim
