#include "workloads/memory/figures.hpp"

#include <algorithm>
#include <utility>

#include "workloads/memory/replay.hpp"
#include "workloads/memory/trainer_memory.hpp"

namespace stepcast::workloads {
namespace {

/// A replay on a card that is never full.
class EndlessCard {
 public:
  /// `tensors`: what the allocations come to at their fullest moment.
  EndlessCard(StepAllocations allocations, Bytes tensors)
      : allocations_(std::move(allocations)), full_(allocations_, tensors.value) {
    full_.run_in_room();
    Replay all = full_;
    all.move_to(CachingAllocator::endless);
    all.run();
    allocated_ = all.allocator().most_allocated();
    held_ = all.allocator().most_held();
    reserved_ = all.allocator().reserved();
  }

  std::int64_t allocated() const { return allocated_; }
  std::int64_t held() const { return held_; }
  std::int64_t reserved() const { return reserved_; }

  /// The smallest card, to half a hundredth, on which the allocations succeed: with less room more
  /// is given back, and what comes next gets segments of its own size.
  std::int64_t least_card() const {
    std::int64_t too_small = allocated_, enough = held_;
    // What earlier replays tell of the cards between.
    std::int64_t succeeds_from = reserved_, fails_below = 0;
    Replay full = full_;  // where the cards between begin to differ
    while (200 * (enough - too_small) > enough) {
      const std::int64_t middle = too_small + (enough - too_small) / 2;
      if (middle < succeeds_from && middle >= fails_below) {
        full.move_to(too_small);
        full.run_in_room();
        Replay replay = full;
        replay.move_to(middle);
        replay.run();
        const CachingAllocator::Cards& alike = replay.allocator().same_on();
        if (replay.allocator().failed())
          fails_below = alike.too_much;
        else
          succeeds_from = alike.enough;
      }
      (middle >= succeeds_from ? enough : too_small) = middle;
    }
    return enough;
  }

 private:
  StepAllocations allocations_;
  Replay full_;  // before more is reserved than any card asked about has
  std::int64_t allocated_ = 0, held_ = 0, reserved_ = 0;
};

}  // namespace

bool allocates_once(const ParallelPlan& plan, const Software& software) {
  return software.memory.allocator == Allocator::planned || (software.own() && trainer_has(plan));
}

Bytes MemoryFigures::tensors() const { return total() - of("fixed") - of("fragmentation"); }

MemoryFigures stage_figures(const TransformerShape& shape, const ParallelPlan& plan,
                            const Batch& batch, const Precision& precision,
                            const Software& software, std::int64_t stage, std::int64_t channels) {
  MemoryFigures out;
  static_cast<Memory&>(out) =
      memory_of_stage(shape, plan, batch, precision, software, stage, channels);
  out.stage = stage;
  if (out.of("fixed").value > 0)
    out.fixed = fixed_memory({shape, plan, batch, precision, software}, stage, channels);
  return out;
}

MemoryFigures fullest_memory(const TransformerShape& shape, const ParallelPlan& plan,
                             const Batch& batch, const Precision& precision,
                             const Software& software, std::int64_t channels) {
  MemoryFigures most = stage_figures(shape, plan, batch, precision, software, 0, channels);
  for (std::int64_t stage = 1; stage < plan.pipeline; ++stage) {
    MemoryFigures other = stage_figures(shape, plan, batch, precision, software, stage, channels);
    if (other.total() > most.total()) most = std::move(other);
  }
  return most;
}

MemoryFigures replayed(MemoryFigures figures, const StepInputs& in) {
  const Bytes tensors = figures.tensors();
  if (allocates_once(in.plan, in.software)) {
    figures.allocated = figures.reserved = figures.held = tensors;
    return figures;
  }
  const EndlessCard card(step_allocations(in, figures.stage), tensors);
  figures.allocated = Bytes(card.allocated());
  figures.reserved = Bytes(card.reserved());
  figures.held = Bytes(card.least_card());
  figures.part("fragmentation") = figures.held - tensors;
  return figures;
}

MemoryFigures memory_figures(const TransformerShape& shape, const ParallelPlan& plan,
                             const Batch& batch, const Precision& precision,
                             const Software& software, std::int64_t channels) {
  return replayed(fullest_memory(shape, plan, batch, precision, software, channels),
                  {shape, plan, batch, precision, software});
}

Fit fit_of(const MemoryFigures& figures, Bytes card, const ParallelPlan& plan,
           const Software& software) {
  if (figures.total() > card) return Fit::surely_not;
  if (figures.replayed() || allocates_once(plan, software)) return Fit::surely;
  const double most = (1 + most_fragmentation) * static_cast<double>(figures.tensors().value);
  const Bytes room = card - figures.of("fixed");
  return most <= static_cast<double>(room.value) ? Fit::surely : Fit::open;
}

bool fits_in(Bytes card, const MemoryFigures& figures, const StepInputs& in) {
  const Fit fit = fit_of(figures, card, in.plan, in.software);
  if (fit != Fit::open) return fit == Fit::surely;
  const Bytes room = card - figures.of("fixed");
  const EndlessCard endless(step_allocations(in, figures.stage), figures.tensors());
  return endless.held() <= room.value || endless.least_card() <= room.value;
}

}  // namespace stepcast::workloads
