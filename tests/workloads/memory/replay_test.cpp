#include "workloads/memory/replay.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/workloads/memory/plain_allocator.hpp"
#include "tests/workloads/random_jobs.hpp"
#include "workloads/memory/figures.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

constexpr std::int64_t mib = 1 << 20;

bool same(const CachingAllocator& fast, const PlainAllocator& plain) {
  return fast.allocated() == plain.allocated() && fast.held() == plain.held() &&
         fast.reserved() == plain.reserved() && fast.failed() == plain.failed();
}

template <class See>
void replay_plainly(const StepAllocations& allocations, PlainAllocator allocator, See see) {
  std::vector<PlainAllocator::Id> blocks(allocations.tensors);
  for (const Allocation& a : allocations.order) {
    if (a.bytes > 0)
      blocks[a.tensor] = allocator.allocate(a.bytes);
    else
      allocator.free(blocks[a.tensor]);
    see(allocator);
  }
}

/// By as many whole replays as it takes.
MemoryFigures plain_figures(const StepAllocations& allocations) {
  std::int64_t allocated = 0, held = 0, reserved = 0;
  replay_plainly(allocations, {}, [&](const PlainAllocator& a) {
    allocated = std::max(allocated, a.allocated());
    held = std::max(held, a.held());
    reserved = a.reserved();
  });
  std::int64_t too_small = allocated, enough = held;
  while (200 * (enough - too_small) > enough) {
    const std::int64_t middle = too_small + (enough - too_small) / 2;
    bool failed = false;
    replay_plainly(allocations, PlainAllocator(middle),
                   [&](const PlainAllocator& a) { failed = a.failed(); });
    (failed ? too_small : enough) = middle;
  }
  MemoryFigures out;
  out.allocated = Bytes(allocated);
  out.reserved = Bytes(reserved);
  out.held = Bytes(enough);
  return out;
}

}  // namespace

TEST_CASE("whatever is allocated and freed on whatever card, bins of sizes do what sets do") {
  CHECK(rc::check([] {
    const std::int64_t card = *rc::gen::inRange<std::int64_t>(0, 1000) * mib;
    CachingAllocator fast(card);
    PlainAllocator plain(card);
    std::vector<std::pair<CachingAllocator::Id, PlainAllocator::Id>> blocks;
    const auto sizes = *rc::gen::container<std::vector<std::int64_t>>(
        4, rc::gen::inRange<std::int64_t>(1, 40 * mib));
    const int steps = *rc::gen::inRange(0, 400);
    for (int i = 0; i < steps; ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, 8);
      if (at < sizes.size() || blocks.empty()) {
        const std::int64_t bytes = sizes[at % sizes.size()] >> *rc::gen::element(0, 0, 1, 7, 14);
        blocks.emplace_back(fast.allocate(bytes), plain.allocate(bytes));
      } else {
        const auto freed = blocks.begin() + *rc::gen::inRange<std::ptrdiff_t>(
                                                0, static_cast<std::ptrdiff_t>(blocks.size()));
        fast.free(freed->first);
        plain.free(freed->second);
        blocks.erase(freed);
      }
      RC_ASSERT(same(fast, plain));
    }
  }));
}

namespace {

/// The plain allocator knows no other streams, and no segments that grow.
StepAllocations on_one_stream(StepAllocations allocations) {
  for (Allocation& a : allocations.order) a.stream = {};
  allocations.expandable = false;
  return allocations;
}

}  // namespace

TEST_CASE("at every allocation of any step, on whatever card, bins of sizes do what sets do") {
  CHECK(rc::check([] {
    const Job job = random_job();
    const StepAllocations allocations = on_one_stream(
        step_allocations(job.inputs(), *rc::gen::inRange<std::int64_t>(0, job.plan.pipeline)));
    const auto all = static_cast<double>(plain_figures(allocations).reserved.value);
    const auto card = static_cast<std::int64_t>(*rc::gen::element(0.8, 0.9, 0.95, 1.0) * all);
    Replay fast(allocations, card);
    replay_plainly(allocations, PlainAllocator(card), [&](const PlainAllocator& plain) {
      fast.step();
      RC_ASSERT(same(fast.allocator(), plain));
    });
  }));
}

TEST_CASE("figures are those that the bisection comes to with a whole replay for each card") {
  CHECK(rc::check([] {
    Job job = random_job();
    job.software.memory.expandable = false;
    job.software.data.flat_parameters = FlatParameters::buckets;  // all on one stream
    const auto& [shape, plan, batch, precision, software] = job;
    const MemoryFigures least = fullest_memory(shape, plan, batch, precision, software, 24);
    const MemoryFigures fast = replayed(least, job.inputs());
    const MemoryFigures plain = plain_figures(step_allocations(job.inputs(), least.stage));
    RC_ASSERT(fast.allocated == plain.allocated);
    RC_ASSERT(fast.reserved == plain.reserved);
    RC_ASSERT(fast.held == plain.held);
    for (const double share : {0.95, 0.99, 1.0, 1.01}) {
      const Bytes card(static_cast<std::int64_t>(share * static_cast<double>(fast.needed().value)));
      RC_ASSERT(fits_in(card, least, job.inputs()) == (fast.needed() <= card));
    }
  }));
}
