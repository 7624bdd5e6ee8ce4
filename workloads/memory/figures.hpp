// Three figures of a rank's memory at its peak: what the allocator has handed out, what it has
// taken from the card, what the process holds.
#pragma once

#include "workloads/memory/fixed_memory.hpp"
#include "workloads/memory/memory.hpp"

namespace stepcast::workloads {

struct MemoryFigures {
  Bytes allocated{};  // at the fullest moment
  Bytes reserved{};   // segments taken from the card, which the caching allocator keeps
  Bytes held{};       // of them with something in use, which it could not give back: most at once
  FixedMemory fixed;
  Bytes process() const { return reserved + Bytes(fixed.total()); }
  /// What the card must have: the allocator gives back the rest before it fails.
  Bytes needed() const { return held + Bytes(fixed.total()); }
};

/// Nothing is allocated during a step: memory is planned, or taken once (our trainer).
bool allocates_once(const ParallelPlan&, const Software&);

/// Of the stage that peak_memory() names. `channels`: that NCCL opens in a communicator.
MemoryFigures memory_figures(const TransformerShape&, const ParallelPlan&, const Batch&,
                             const Precision&, const Software&, std::int64_t channels);

/// Whether needed() of these figures is at most `card`, mostly for a fraction of the work.
bool fits_in(Bytes card, const TransformerShape&, const ParallelPlan&, const Batch&,
             const Precision&, const Software&, std::int64_t channels);

}  // namespace stepcast::workloads
