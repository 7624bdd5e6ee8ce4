// Folding against the whole: same step, same account of every rank, to the picosecond.
#include "engine/fold.hpp"

#include <catch2/catch.hpp>

#include "engine/run.hpp"
#include "systems.hpp"

using namespace stepcast;
using namespace stepcast::engine;
using namespace stepcast::engine::testing;

TEST_CASE("ranks that differ in nothing fold into one") {
  ProgramBuilder b(1);
  b.work(compute_lane, 0, no_cost);
  b.join(compute_lane, 0, 0, no_cost);
  System s = make_system(8, {b.take()}, {{{0, 1}, {2, 3}, {4, 5}, {6, 7}}});
  s.works = {{10_us, 0}};
  s.transfers = {transfer(1e6, 100)};
  const Fold f = fold(s);
  CHECK(f.system.num_ranks() == 1);
  CHECK(f.multiplicity[0] == 8);
  CHECK(run(f.system, {.cold = true}).step == 20_us);
}

TEST_CASE("a straggler unfolds its group and nobody else") {
  ProgramBuilder b(1);
  b.work(compute_lane, 0, no_cost);
  b.join(compute_lane, 0, 0, no_cost);
  System s = make_system(8, {b.take()}, {{{0, 1}, {2, 3}, {4, 5}, {6, 7}}});
  s.works = {{10_us, 0}};
  s.transfers = {transfer(1e6, 100)};
  s.slowness.assign(8, 1.0);
  s.slowness[5] = 2.0;
  const Fold f = fold(s);
  CHECK(f.system.num_ranks() == 3);  // the straggler, its partner, the rest
  CHECK(run(f.system, {.cold = true}).step == run(s, {.cold = true}).step);
}

TEST_CASE("a shared uplink keeps its load when the groups on it fold") {
  // Four pairs share one link of 100 GB/s: 1 MB each, together 40 us.
  ProgramBuilder b(1);
  b.join(compute_lane, 0, 0, no_cost);
  System s = make_system(8, {b.take()}, {{{0, 1}, {2, 3}, {4, 5}, {6, 7}}});
  s.transfers = {transfer(1e6, 100)};
  s.link_capacity = {100_GBps};
  s.link_owner = {no_owner};
  for (Communicator& c : s.communicators) c.loads = {{0, 1.0}};
  CHECK(fold(s).system.num_ranks() == 1);
  CHECK(run(s, {.cold = true}).step == 40_us);
  CHECK(run(fold(s).system, {.cold = true}).step == 40_us);
}

TEST_CASE("two groups with the same members stay two, as their slots tell them apart") {
  // All four ranks meet on the compute lane in slot 0 and on another lane in slot 1.
  ProgramBuilder b(2);
  b.join(async_lane, 1, 0, no_cost);
  b.join(compute_lane, 0, 0, no_cost);
  System s = make_system(4, {b.take()}, {{{0, 1, 2, 3}}, {{0, 1, 2, 3}}});
  s.transfers = {transfer(1e6, 100)};
  CHECK(fold(s).system.communicators.size() == 2);
  CHECK(run(fold(s).system, {.cold = true}).step == run(s, {.cold = true}).step);
}

// Without links, what a folded rank does with itself alone beside its kernels needs no queue.
TEST_CASE("folded and whole agree to the picosecond on random systems, on links and on none") {
  std::uint64_t folded = 0, fewer = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    System s = random_system(seed, seed % 2 == 0);
    if (seed % 5 < 3)
      for (Communicator& c : s.communicators) c.loads.clear();
    const RunOptions options{.cold = seed % 3 == 0};
    const Fold f = fold(s);
    if (f.system.num_ranks() < s.num_ranks()) ++folded;
    const RunResult whole = run(s, options);
    const RunResult part = run(f.system, options);
    INFO("seed " << seed);
    REQUIRE(whole.step == part.step);
    for (std::uint32_t r = 0; r < s.num_ranks(); ++r)
      REQUIRE(whole.ranks[r] == part.ranks[f.representative[r]]);
    RunOptions queued = options;
    queued.closed_forms = false;
    const RunResult all_queued = run(f.system, queued);
    REQUIRE(all_queued.step == part.step);
    REQUIRE(all_queued.ranks == part.ranks);
    if (2 * part.queued < all_queued.queued) ++fewer;
  }
  CHECK(folded > 1000);
  CHECK(fewer > 500);
}

TEST_CASE("systems are alike when the same of their weights, capacities and speeds are equal") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const System s = random_system(seed, false);
    System scaled = s;
    for (BytesPerSecond& c : scaled.link_capacity) c = c * 3.0;
    for (Communicator& c : scaled.communicators)
      for (LinkLoad& load : c.loads) load.weight *= 0.75;
    INFO("seed " << seed);
    REQUIRE(likeness_of(scaled) == likeness_of(s));
    REQUIRE(classes_of(scaled).ranks == classes_of(s).ranks);
    REQUIRE(classes_of(scaled).links == classes_of(s).links);
    scaled.communicators.front().loads.front().weight *= 2;
    REQUIRE_FALSE(likeness_of(scaled) == likeness_of(s));
  }
}
