// The event loop against closed forms, and against itself: segments against kernel by kernel,
// closed forms against the fluid layer, first-in against last-in worklist, to the picosecond.
#include "engine/run.hpp"

#include <catch2/catch.hpp>

#include "systems.hpp"

using namespace stepcast;
using namespace stepcast::engine;
using namespace stepcast::engine::testing;

namespace {

RunResult run_cold(const System& s) { return run(s, {.cold = true}); }

}  // namespace

TEST_CASE("a lane runs its kernels one after the other once they are launched") {
  // Three kernels of 10 us, launched at 1, 2, 3 us: the lane is free at 1 + 30 us.
  ProgramBuilder b(1);
  for (int i = 0; i < 3; ++i) b.work(compute_lane, 0, launch_cost);
  System s = make_system(1, {b.take()}, {});
  s.works = {{10_us, 0}};
  const RunResult r = run_cold(s);
  CHECK(r.step == 31_us);
  CHECK(r.ranks[0].compute == 30_us);
  CHECK(r.ranks[0].host == 1_us);
}

TEST_CASE("short kernels are bound by the host thread") {
  // Kernels of 0.25 us launched every 1 us: n us to launch, then the last one runs.
  ProgramBuilder b(1);
  for (int i = 0; i < 100; ++i) b.work(compute_lane, 0, launch_cost);
  System s = make_system(1, {b.take()}, {});
  s.works = {{250_ns, 0}};
  const RunResult r = run_cold(s);
  CHECK(r.step == 100_us + 250_ns);
  CHECK(r.ranks[0].compute == 25_us);
  CHECK(r.ranks[0].host == r.step - 25_us);
}

TEST_CASE("a cyclic program without a mark settles to its period") {
  // 4 kernels of 10 us, host far ahead: the steady step is 40 us although the cold one is 41.
  ProgramBuilder b(1);
  for (int i = 0; i < 4; ++i) b.work(compute_lane, 0, launch_cost);
  System s = make_system(1, {b.take()}, {});
  s.works = {{10_us, 0}};
  const RunResult r = run(s);
  CHECK(r.steady);
  CHECK(r.step == 40_us);
  CHECK(r.ranks[0].total() == 40_us);
}

TEST_CASE("the host may wait for the device, and what it launches then comes later") {
  // Launch at 1 us, kernel ends at 11; the host waits for it, launches at 12; ends at 22.
  ProgramBuilder b(1);
  b.work(compute_lane, 0, launch_cost);
  b.host_wait(b.record(compute_lane));
  b.work(compute_lane, 0, launch_cost);
  System s = make_system(1, {b.take()}, {});
  s.works = {{10_us, 0}};
  const RunResult r = run_cold(s);
  CHECK(r.step == 22_us);
  CHECK(r.ranks[0].host == 2_us);
}

TEST_CASE("a collective starts when its last member has come") {
  // Rank 0 computes 10 us, rank 1 30 us; 1 MB at 100 GB/s is 10 us: both end at 40.
  ProgramBuilder fast(1), slow(1);
  fast.work(compute_lane, 0, no_cost);
  fast.join(compute_lane, 0, 0, no_cost);
  slow.work(compute_lane, 1, no_cost);
  slow.join(compute_lane, 0, 0, no_cost);
  System s = make_system(2, {fast.take(), slow.take()}, {{{0, 1}}});
  s.role_of_rank = {0, 1};
  s.works = {{10_us, 0}, {30_us, 0}};
  s.transfers = {transfer(1e6, 100, Traffic::tensor)};
  for (const bool closed : {true, false}) {
    const RunResult r = run(s, {.closed_forms = closed, .cold = true});
    CHECK(r.step == 40_us);
    CHECK(r.ranks[0].wait == 20_us);
    CHECK(r.ranks[0].exposed[0] == 10_us);
    CHECK(r.ranks[1].wait == 0_us);
    CHECK(r.ranks[0].communication[0] == 30_us);
  }
}

TEST_CASE("a collective beside computation is hidden until the compute lane waits for it") {
  // Gather of 20 us from 0 on; compute 15 us, then waits: 5 us exposed; then 5 us more compute.
  ProgramBuilder b(2);
  b.join(async_lane, 0, 0, no_cost);
  const std::uint32_t gathered = b.record(async_lane);
  b.work(compute_lane, 0, no_cost);
  b.wait(compute_lane, gathered);
  b.work(compute_lane, 1, no_cost);
  System s = make_system(2, {b.take()}, {{{0, 1}}});
  s.works = {{15_us, 0}, {5_us, 0}};
  s.transfers = {transfer(1e6, 50)};
  const RunResult r = run_cold(s);
  CHECK(r.step == 25_us);
  CHECK(r.ranks[0].compute == 20_us);
  CHECK(r.ranks[0].exposed[2] == 5_us);
  CHECK(r.ranks[0].communication[2] == 20_us);
}

TEST_CASE("computation is slowed while a collective is resident and while its bytes move") {
  // Rank 1 joins 10 us later than rank 0. A kernel of 40 us takes 2 x as long while bytes move
  // (10..20 us) and 1.25 x while the collective only holds SMs (rank 0: 0..10 us).
  // Rank 0: 8 us done by 10, 5 us more by 20, 27 left: ends at 47. Rank 1: its own kernel of 10 us
  // on the other lane delays the join only: 10 done by 10, 15 by 20, ends at 45.
  const auto program = [](bool late) {
    ProgramBuilder b(3);
    if (late) {
      b.work(other_lane, 1, no_cost);
      const std::uint32_t ready = b.record(other_lane);
      b.wait(async_lane, ready);
    }
    b.join(async_lane, 0, 0, no_cost);
    b.work(compute_lane, 0, no_cost);
    return b.take();
  };
  System s = make_system(2, {program(false), program(true)}, {{{0, 1}}});
  s.role_of_rank = {0, 1};
  s.works = {{40_us, 0}, {10_us, 0}};
  s.stretch[1] = 1.25;
  s.stretch[2] = 2.0;
  s.transfers = {transfer(1e6, 100)};
  for (const bool segments : {true, false}) {
    const RunResult r = run(s, {.segments = segments, .cold = true});
    CHECK(r.ranks[0].compute == 47_us);
    CHECK(r.ranks[0].interference == 7_us);
    CHECK(r.ranks[1].compute == 45_us);
    CHECK(r.step == 47_us);
  }
}

TEST_CASE("two collectives that share a link each get half of it") {
  // Link 100 GB/s; two transfers of 1 MB (10 us alone) start together: both end at 20 us.
  ProgramBuilder b(1);
  b.join(compute_lane, 0, 0, no_cost);
  System s = make_system(4, {b.take()}, {{{0, 1}, {2, 3}}});
  s.transfers = {transfer(1e6, std::numeric_limits<double>::infinity(), Traffic::tensor)};
  s.link_capacity = {100_GBps};
  s.link_owner = {no_owner};
  for (Communicator& c : s.communicators) c.loads = {{0, 1.0}};
  CHECK(run_cold(s).step == 20_us);
}

TEST_CASE("pipeline: a receiver waits in a bubble, bytes are exposed") {
  ProgramBuilder sender(1), receiver(1);
  sender.work(compute_lane, 0, no_cost);
  sender.join(compute_lane, 0, 0, no_cost);
  receiver.join(compute_lane, 0, 0, no_cost);
  receiver.work(compute_lane, 0, no_cost);
  System s = make_system(2, {sender.take(), receiver.take()}, {{{0, 1}}});
  s.role_of_rank = {0, 1};
  s.works = {{10_us, 0}};
  s.transfers = {transfer(1e6, 100, Traffic::pipeline)};
  const RunResult r = run_cold(s);
  CHECK(r.step == 30_us);
  CHECK(r.ranks[1].bubble == 10_us);
  CHECK(r.ranks[1].exposed[1] == 10_us);
}

TEST_CASE("a member that never comes is named") {
  ProgramBuilder joins(1), idle(1);
  joins.join(compute_lane, 0, 0, no_cost);
  idle.work(compute_lane, 0, no_cost);
  System s = make_system(2, {joins.take(), idle.take()}, {{{0, 1}}});
  s.role_of_rank = {0, 1};
  s.works = {{10_us, 0}};
  s.transfers = {transfer(1e6, 100)};
  CHECK_THROWS_WITH(
      run_cold(s), Catch::Contains("rank 0 lane 0") && Catch::Contains("1 of 2 members have come"));
}

TEST_CASE("a slower rank delays those that meet it") {
  ProgramBuilder b(1);
  b.work(compute_lane, 0, no_cost);
  b.join(compute_lane, 0, 0, no_cost);
  System s = make_system(2, {b.take()}, {{{0, 1}}});
  s.works = {{10_us, 0}};
  s.transfers = {transfer(1e6, 100)};
  s.slowness = {1.0, 1.5};
  const RunResult r = run_cold(s);
  CHECK(r.step == 25_us);
  CHECK(r.ranks[0].wait == 5_us);
}

TEST_CASE("segments, closed forms and worklist order do not change a picosecond") {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const System s = random_system(seed, seed % 2 == 0);
    const bool cold = seed % 3 == 0;
    const RunResult a = run(s, {.cold = cold});
    INFO("seed " << seed);
    for (const Duration d : {a.ranks[0].compute, a.ranks[0].host, a.ranks[0].wait}) {
      INFO("parts are not negative");
      REQUIRE(d >= Duration{});
    }
    for (const RunOptions o : {RunOptions{.segments = false, .closed_forms = false, .cold = cold},
                               RunOptions{.segments = false, .cold = cold},
                               RunOptions{.closed_forms = false, .cold = cold},
                               RunOptions{.last_in_first_out = true, .cold = cold}}) {
      const RunResult b = run(s, o);
      REQUIRE(a.step == b.step);
      for (std::size_t r = 0; r < a.ranks.size(); ++r) {
        INFO("rank " << r << " compute " << a.ranks[r].compute.count() << " "
                     << b.ranks[r].compute.count() << " wait " << a.ranks[r].wait.count() << " "
                     << b.ranks[r].wait.count() << " host " << a.ranks[r].host.count() << " "
                     << b.ranks[r].host.count() << " data " << a.ranks[r].exposed[2].count() << " "
                     << b.ranks[r].exposed[2].count() << " interference "
                     << a.ranks[r].interference.count() << " " << b.ranks[r].interference.count());
        REQUIRE(a.ranks[r] == b.ranks[r]);
      }
      REQUIRE(a.steady == b.steady);
    }
    if (a.steady && !cold && seed % 2 == 0)
      for (const RankAccount& r : a.ranks) REQUIRE(r.total() == a.step);
  }
}

TEST_CASE("segments beside a transfer pass its instants without the queue") {
  // A gather of 100 us or more beside 50 kernels of 1 us, each a segment of its own.
  ProgramBuilder b(2);
  b.join(async_lane, 0, 0, no_cost);
  const std::uint32_t gathered = b.record(async_lane);
  for (int k = 0; k < 50; ++k) {
    b.work(compute_lane, 0, no_cost);
    b.record(compute_lane);
  }
  b.wait(compute_lane, gathered);
  System s = make_system(2, {b.take()}, {{{0, 1}}});
  s.works = {{1_us, 0}};
  s.stretch[2] = 1.5;
  s.transfers = {transfer(1e6, 10)};
  const RunResult r = run(s, {.cold = true});
  CHECK(r.step == 100_us);
  CHECK(r.ranks[0].compute == 75_us);
  CHECK(r.queued <= 3);  // the start, and a look of each rank before it was known
}

TEST_CASE("a collective on links that are never full needs no queue, whatever runs beside it") {
  // Ports of 400 GB/s hold a tensor collective at 300 and the gather at 90, ports of 350 do not.
  ProgramBuilder b(2);
  b.join(async_lane, 1, 1, no_cost);
  const std::uint32_t gathered = b.record(async_lane);
  for (int k = 0; k < 10; ++k) {
    b.work(compute_lane, 0, no_cost);
    b.join(compute_lane, 0, 0, no_cost);
  }
  b.wait(compute_lane, gathered);
  System s = make_system(4, {b.take()}, {{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}});
  s.works = {{1_us, 0}};
  s.transfers = {transfer(3e6, 300, Traffic::tensor), transfer(9e6, 90)};
  s.link_owner = {0, 1, 2, 3};
  for (Communicator& c : s.communicators)
    for (const std::uint32_t r : c.members) c.loads.push_back({r, 1.0});
  s.link_capacity.assign(4, 400_GBps);
  const RunResult roomy = run(s, {.cold = true});
  CHECK(roomy.flows == 2);
  CHECK(roomy.step == 110_us);
  CHECK(roomy.ranks == run(s, {.closed_forms = false, .cold = true}).ranks);
  s.link_capacity.assign(4, 350_GBps);
  const RunResult narrow = run(s, {.cold = true});
  CHECK(narrow.flows > 2);
  CHECK(narrow.step > 110_us);
}
