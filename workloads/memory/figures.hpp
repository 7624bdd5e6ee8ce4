// Three figures of a rank's memory at its peak: what the allocator has handed out, what it has
// taken from the card, what the process holds.
#pragma once

#include "workloads/memory/fixed_memory.hpp"
#include "workloads/memory/memory.hpp"

namespace stepcast::workloads {

/// Of a stage. Its parts add up to needed(), with "fragmentation" among
/// them, once the allocator's work has been replayed; before, to what no allocator can do without.
struct MemoryFigures : Memory {
  std::int64_t stage = 0;
  Bytes allocated{};  // at the fullest moment
  Bytes reserved{};   // segments taken from the card, which the caching allocator keeps
  Bytes held{};       // of them with something in use, which it could not give back: most at once
  FixedMemory fixed;
  bool replayed() const { return held.value > 0; }
  Bytes tensors() const;  // the parts that an allocator hands out
  Bytes process() const { return reserved + Bytes(fixed.total()); }
  /// What the card must have: the allocator gives back the rest before it fails.
  Bytes needed() const { return held + Bytes(fixed.total()); }
};

/// Nothing is allocated during a step: memory is planned, or taken once (our trainer).
bool allocates_once(const ParallelPlan&, const Software&);

/// Without a replay: of one stage, of the fullest. `channels`: that NCCL opens in a communicator.
MemoryFigures stage_figures(const TransformerShape&, const ParallelPlan&, const Batch&,
                            const Precision&, const Software&, std::int64_t stage,
                            std::int64_t channels);
MemoryFigures fullest_memory(const TransformerShape&, const ParallelPlan&, const Batch&,
                             const Precision&, const Software&, std::int64_t channels);
/// The same with one.
MemoryFigures replayed(MemoryFigures, const StepInputs&);
MemoryFigures memory_figures(const TransformerShape&, const ParallelPlan&, const Batch&,
                             const Precision&, const Software&, std::int64_t channels);

/// Of the tensors, what fragmentation adds at most. Of some 10,000 random plans of all frameworks
/// the worst has 57 % (tests/laws/memory_test.cpp, 2026-11-28).
inline constexpr double most_fragmentation = 1.0;

enum class Fit : std::uint8_t { surely, surely_not, open };

/// Whether a card has needed(), as far as figures without a replay tell.
Fit fit_of(const MemoryFigures&, Bytes card, const ParallelPlan&, const Software&);

/// Whether a card has needed(), by a replay where nothing less tells.
bool fits_in(Bytes card, const MemoryFigures&, const StepInputs&);

}  // namespace stepcast::workloads
