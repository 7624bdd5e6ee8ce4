#include "workloads/memory/figures.hpp"

#include <algorithm>

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

bool survives(const StepAllocations& allocations, std::int64_t card) {
  bool failed = false;
  replay(allocations, CachingAllocator(card),
         [&](std::size_t, const CachingAllocator& allocator) { failed = allocator.failed(); });
  return !failed;
}

/// The smallest card, to half a hundredth, on which the allocations succeed: with less room more is
/// given back, and what comes next gets segments of its own size.
std::int64_t least_card(const StepAllocations& allocations, std::int64_t too_small,
                        std::int64_t enough) {
  while (200 * (enough - too_small) > enough) {
    const std::int64_t middle = too_small + (enough - too_small) / 2;
    (survives(allocations, middle) ? enough : too_small) = middle;
  }
  return enough;
}

void fill(MemoryFigures& figures, const StepAllocations& allocations) {
  std::int64_t allocated = 0, held = 0, reserved = 0;
  replay(allocations, {}, [&](std::size_t, const CachingAllocator& allocator) {
    allocated = std::max(allocated, allocator.allocated());
    held = std::max(held, allocator.held());
    reserved = allocator.reserved();
  });
  figures.allocated = Bytes(allocated);
  figures.reserved = Bytes(reserved);
  figures.held = Bytes(least_card(allocations, allocated, held));
}

/// The most bytes in use at once, whatever hands them out.
std::int64_t most_allocated(const StepAllocations& allocations) {
  std::vector<std::int64_t> bytes(allocations.tensors);
  std::int64_t now = 0, most = 0;
  for (const Allocation& a : allocations.order) {
    now += a.bytes > 0 ? a.bytes : -bytes[a.tensor];
    if (a.bytes > 0) bytes[a.tensor] = a.bytes;
    most = std::max(most, now);
  }
  return most;
}

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
  fill(figures, step_allocations(in, stage));
  return figures;
}

bool fits_in(Bytes card, const TransformerShape& shape, const ParallelPlan& plan,
             const Batch& batch, const Precision& precision, const Software& software,
             std::int64_t channels) {
  if (!allocates_once(plan, software)) {
    const StepInputs in{shape, plan, batch, precision, software};
    const std::int64_t stage = fullest_stage(shape, plan, batch, precision, software);
    const bool host = software.attention.kernel == AttentionKernel::host;
    const std::int64_t fixed = host ? 0 : fixed_memory(in, stage, channels).total();
    const StepAllocations allocations = step_allocations(in, stage);
    if (most_allocated(allocations) + fixed > card.value) return false;
    std::int64_t held = 0;
    replay(allocations, {}, [&](std::size_t, const CachingAllocator& allocator) {
      held = std::max(held, allocator.held());
    });
    if (held + fixed <= card.value) return true;
  }
  return memory_figures(shape, plan, batch, precision, software, channels).needed() <= card;
}

}  // namespace stepcast::workloads
