#include "workloads/memory/caching_allocator.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

using stepcast::workloads::CachingAllocator;

namespace {

constexpr std::int64_t mib = 1 << 20;

}  // namespace

TEST_CASE("blocks are rounded to 512 bytes, and small ones share segments of 2 MiB") {
  CachingAllocator a;
  a.allocate(1);
  CHECK(a.allocated() == 512);
  CHECK(a.reserved() == 2 * mib);
  a.allocate(mib);
  CHECK(a.reserved() == 2 * mib);
  a.allocate(mib);  // 512 bytes too much for the first segment
  CHECK(a.reserved() == 4 * mib);
}

TEST_CASE("blocks of 1 to 10 MiB share segments of 20 MiB, larger ones are rounded to 2 MiB") {
  CachingAllocator a;
  a.allocate(mib + 1);
  CHECK(a.reserved() == 20 * mib);
  a.allocate(9 * mib);
  CHECK(a.reserved() == 20 * mib);
  a.allocate(10 * mib);  // 10 MiB less 512 bytes are left
  CHECK(a.reserved() == 30 * mib);
  a.allocate(11 * mib);
  CHECK(a.reserved() == 42 * mib);
}

TEST_CASE("what is left of a large block is a block only above 1 MiB") {
  CachingAllocator a;
  const auto block = a.allocate(40 * mib);
  a.free(block);
  CHECK(a.allocated() == 0);
  const auto close = a.allocate(39 * mib);
  CHECK(a.allocated() == 40 * mib);  // 1 MiB is not split off
  a.free(close);
  a.allocate(38 * mib);
  CHECK(a.allocated() == 38 * mib);
  a.allocate(2 * mib);
  CHECK(a.reserved() == 40 * mib);
}

TEST_CASE("the smallest free block that is large enough is taken") {
  CachingAllocator a;
  const auto large = a.allocate(100 * mib);
  const auto small = a.allocate(30 * mib);
  a.free(large);
  a.free(small);
  a.allocate(30 * mib);
  a.allocate(100 * mib);
  CHECK(a.reserved() == 130 * mib);
}

TEST_CASE("free neighbours join, so a freed half and its other half serve the whole again") {
  CachingAllocator a;
  a.free(a.allocate(64 * mib));
  const auto first = a.allocate(32 * mib);
  const auto second = a.allocate(32 * mib);
  a.free(first);
  a.free(second);
  a.allocate(64 * mib);
  CHECK(a.reserved() == 64 * mib);
}

TEST_CASE("a segment with one small tenant is held whole, one without can be given back") {
  CachingAllocator a;
  a.free(a.allocate(64 * mib));
  CHECK(a.held() == 0);
  CHECK(a.reserved() == 64 * mib);
  a.allocate(2 * mib);  // best fit: the only free block
  CHECK(a.held() == 64 * mib);
  CHECK(a.allocated() == 2 * mib);
}

TEST_CASE("on a full card free segments are given back, and only what is in use can fail") {
  CachingAllocator a(100 * mib);
  a.free(a.allocate(60 * mib));
  const auto block = a.allocate(80 * mib);
  CHECK(!a.failed());
  CHECK(a.reserved() == 80 * mib);
  a.free(block);
  a.allocate(40 * mib);  // a part of the free segment, which is then held
  a.allocate(60 * mib);
  CHECK(a.failed());
}

TEST_CASE("allocated <= held <= reserved, and everything freed leaves nothing") {
  CHECK(rc::check([] {
    CachingAllocator a;
    std::vector<CachingAllocator::Id> blocks;
    const auto steps = *rc::gen::container<std::vector<std::int64_t>>(
        rc::gen::inRange<std::int64_t>(-40, 60 * mib));
    for (const std::int64_t step : steps) {
      if (step > 0) {
        blocks.push_back(a.allocate(step));
      } else if (!blocks.empty()) {
        a.free(blocks.back());
        blocks.pop_back();
      }
      RC_ASSERT(a.allocated() <= a.held());
      RC_ASSERT(a.held() <= a.reserved());
    }
    for (const auto block : blocks) a.free(block);
    RC_ASSERT(a.allocated() == 0);
    RC_ASSERT(a.held() == 0);
  }));
}

TEST_CASE("a stream never gets what another has freed") {
  using stepcast::workloads::Stream;
  CachingAllocator a;
  a.free(a.allocate(100 * mib, Stream::gather));
  a.allocate(100 * mib);
  CHECK(a.reserved() == 200 * mib);
  a.allocate(100 * mib, Stream::gather);
  CHECK(a.reserved() == 200 * mib);
}

TEST_CASE("expandable segments grow by what is missing, and what was freed joins") {
  CachingAllocator fixed, grown(CachingAllocator::endless, true);
  for (CachingAllocator* a : {&fixed, &grown}) {
    const auto first = a->allocate(40 * mib), second = a->allocate(60 * mib);
    a->free(first);
    a->free(second);
    a->allocate(120 * mib);
  }
  CHECK(fixed.reserved() == 220 * mib);
  CHECK(grown.reserved() == 120 * mib);
}

TEST_CASE("expandable segments give back whole pages of free blocks before they fail") {
  CachingAllocator a(200 * mib, true);
  const auto hole = a.allocate(100 * mib);
  a.allocate(20 * mib);
  a.free(hole);
  a.allocate(160 * mib);  // not in the hole: its pages are given back, and the end grows
  CHECK_FALSE(a.failed());
  CHECK(a.reserved() == 180 * mib);
  a.allocate(40 * mib);
  CHECK(a.failed());
}

TEST_CASE("expandable segments reserve at least what is allocated, and no more than they grew by") {
  CHECK(rc::check([] {
    CachingAllocator a(CachingAllocator::endless, true);
    std::vector<CachingAllocator::Id> alive;
    std::int64_t most = 0;
    const auto sizes =
        *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 64 * mib));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (i % 3 == 2)
        a.free(alive[alive.size() / 2]),
            alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(alive.size() / 2));
      alive.push_back(a.allocate(sizes[i]));
      most = std::max(most, a.allocated());
      RC_ASSERT(a.reserved() >= a.allocated());
    }
    for (const auto block : alive) a.free(block);
    RC_ASSERT(a.allocated() == 0);
    // All joined: a block as large as has ever been alive fits without growth.
    const std::int64_t before = a.reserved();
    if (most > 40 * mib) {
      a.allocate(most - 30 * mib);
      RC_ASSERT(a.reserved() == before);
    }
  }));
}
