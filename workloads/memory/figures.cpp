#include "workloads/memory/figures.hpp"

#include <algorithm>
#include <limits>

#include "workloads/memory/replay.hpp"
#include "workloads/memory/trainer_memory.hpp"

namespace stepcast::workloads {
namespace {

/// All parts but what no allocator hands out and what they add for a caching one.
Bytes handed_out(const Memory& memory, const FixedMemory& fixed) {
  Bytes sum{};
  for (const MemoryPart& part : memory.parts)
    if (part.name != "fragmentation")
      sum += part.name == "fixed" ? Bytes(part.bytes.value - fixed.total()) : part.bytes;
  return sum;
}

/// A replay on a card that is never full.
class EndlessCard {
 public:
  explicit EndlessCard(const StepAllocations& allocations)
      : full_(allocations, CachingAllocator(allocations.most_in_use)) {
    while (!full_.ended() && full_.step_in_room()) continue;
    Replay all = full_;
    all.move_to(endless);
    while (!all.ended()) all.step();
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
    while (200 * (enough - too_small) > enough) {
      const std::int64_t middle = too_small + (enough - too_small) / 2;
      if (middle < succeeds_from && middle >= fails_below) {
        Replay replay = full_;
        replay.move_to(middle);
        while (!replay.ended() && !replay.allocator().failed()) replay.step();
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
  static constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max() - 1;

  Replay full_;  // before more is reserved than any card asked about has
  std::int64_t allocated_ = 0, held_ = 0, reserved_ = 0;
};

}  // namespace

bool allocates_once(const ParallelPlan& plan, const Software& software) {
  return software.memory.allocator == Allocator::planned || (software.own() && trainer_has(plan));
}

MemoryFigures memory_figures(const TransformerShape& shape, const ParallelPlan& plan,
                             const Batch& batch, const Precision& precision,
                             const Software& software, std::int64_t channels) {
  const StepInputs in{shape, plan, batch, precision, software};
  const std::int64_t stage = fullest_stage(shape, plan, batch, precision, software);
  MemoryFigures figures;
  if (software.attention.kernel != AttentionKernel::host)
    figures.fixed = fixed_memory(in, stage, channels);
  if (allocates_once(plan, software)) {
    figures.allocated = figures.reserved = figures.held = handed_out(
        memory_of_stage(shape, plan, batch, precision, software, stage), fixed_memory(in, stage));
    return figures;
  }
  const StepAllocations allocations = step_allocations(in, stage);
  const EndlessCard card(allocations);
  figures.allocated = Bytes(card.allocated());
  figures.reserved = Bytes(card.reserved());
  figures.held = Bytes(card.least_card());
  return figures;
}

bool fits_in(Bytes card, const TransformerShape& shape, const ParallelPlan& plan,
             const Batch& batch, const Precision& precision, const Software& software,
             std::int64_t channels) {
  if (allocates_once(plan, software))
    return memory_figures(shape, plan, batch, precision, software, channels).needed() <= card;
  const StepInputs in{shape, plan, batch, precision, software};
  const std::int64_t stage = fullest_stage(shape, plan, batch, precision, software);
  const bool host = software.attention.kernel == AttentionKernel::host;
  const std::int64_t room = card.value - (host ? 0 : fixed_memory(in, stage, channels).total());
  const StepAllocations allocations = step_allocations(in, stage);
  if (allocations.most_in_use > room) return false;
  const EndlessCard endless(allocations);
  return endless.held() <= room || endless.least_card() <= room;
}

}  // namespace stepcast::workloads
