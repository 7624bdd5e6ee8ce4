// The critical path against closed forms, and on random systems: its edges sum to the step.
#include "engine/path/critical_path.hpp"

#include <catch2/catch.hpp>

#include "../systems.hpp"

using namespace stepcast;
using namespace stepcast::engine;
using namespace stepcast::engine::testing;

namespace {

CriticalPath path_of(const System& s, const RunOptions& options = {}) {
  StepLog log(s, options.cold);
  const RunResult result = run(s, options, &log);
  log.ended_with(result);
  CHECK(result.step == run(s, options).step);
  return critical_path(log, result.step, result.step / 100);
}

/// The edges follow each other without a gap.
bool is_chain(const CriticalPath& path) {
  for (std::size_t e = 1; e < path.edges.size(); ++e)
    if (path.edges[e].from != path.edges[e - 1].to) return false;
  return true;
}

}  // namespace

TEST_CASE("the edges of the critical path sum to the step on random systems", "[why]") {
  std::int64_t slowed = 0, shared = 0, launched = 0;
  for (const bool marked : {true, false})
    for (const bool cold : {false, true})
      for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(marked, cold, seed);
        const System s = random_system(seed, marked);
        const CriticalPath path = path_of(s, {.cold = cold});  // ensures the sum
        CHECK(is_chain(path));
        for (const PathEdge& edge : path.edges) {
          const bool longer = edge.extra > Duration{};
          slowed += longer && edge.kind == PathEdge::Kind::kernel;
          shared += longer && edge.kind == PathEdge::Kind::transfer;
          launched += edge.kind == PathEdge::Kind::host;
        }
      }
  // The paths go through all that can happen.
  CHECK(slowed > 100);
  CHECK(shared > 100);
  CHECK(launched > 100);
}

TEST_CASE("a step bound by its host thread is a path of launches", "[why]") {
  // 100 kernels of 0.25 us, launched 1 us apart: 100 us of host, then the last kernel.
  ProgramBuilder b(1);
  for (int i = 0; i < 100; ++i) b.work(compute_lane, 0, launch_cost);
  System s = make_system(1, {b.take()}, {});
  s.works = {{250_ns, 0}};
  const CriticalPath path = path_of(s, {.cold = true});
  REQUIRE(path.edges.size() == 2);
  CHECK(path.edges[0].kind == PathEdge::Kind::host);
  CHECK(path.edges[0].length() == 100_us);
  CHECK(path.edges[1].kind == PathEdge::Kind::kernel);
  CHECK(path.edges[1].length() == 250_ns);
}

TEST_CASE("a two-stage pipeline is one forward, the second stage's work, one backward", "[why]") {
  // f = 10 us, b = 20 us, on the second stage 12 and 24, s = 5 us, 4 micro-batches, all forwards
  // first: 10 + 5 + 4 x 12 + 4 x 24 + 5 + 20 us.
  constexpr std::uint8_t forth = 1, back = 2;
  constexpr std::uint32_t f = 0, b = 1, slow_f = 2, slow_b = 3;
  ProgramBuilder first(3), second(3);
  for (int m = 0; m < 4; ++m) {
    first.work(compute_lane, f, no_cost);
    first.wait(forth, first.record(compute_lane));
    first.join(forth, 0, 0, no_cost);
    second.join(forth, 0, 0, no_cost);
    second.wait(compute_lane, second.record(forth));
    second.work(compute_lane, slow_f, no_cost);
  }
  for (int m = 0; m < 4; ++m) {
    second.work(compute_lane, slow_b, no_cost);
    second.wait(back, second.record(compute_lane));
    second.join(back, 1, 0, no_cost);
    first.join(back, 1, 0, no_cost);
    first.wait(compute_lane, first.record(back));
    first.work(compute_lane, b, no_cost);
  }
  System s = make_system(2, {first.take(), second.take()}, {{{0, 1}}, {{0, 1}}});
  s.role_of_rank = {0, 1};
  s.works = {{10_us, 0}, {20_us, 0}, {12_us, 0}, {24_us, 0}};
  s.transfers = {transfer(5e5, 100, Traffic::pipeline)};
  const CriticalPath path = path_of(s, {.cold = true});
  CHECK(path.length() == 184_us);
  Duration on[2]{}, moved{};
  for (const PathEdge& edge : path.edges)
    (edge.kind == PathEdge::Kind::transfer ? moved : on[edge.call.rank]) += edge.length();
  CHECK(on[0] == 30_us);
  CHECK(on[1] == 144_us);
  CHECK(moved == 10_us);
  CHECK(path.edges.front().call.rank == 0);
  CHECK(path.edges.back().call.rank == 0);
}

TEST_CASE("two members that come at the same instant are a tie", "[why]") {
  for (const bool tied : {true, false}) {
    ProgramBuilder one(1), other(1);
    one.work(compute_lane, 0, no_cost);
    one.join(compute_lane, 0, 0, no_cost);
    other.work(compute_lane, 1, no_cost);
    other.join(compute_lane, 0, 0, no_cost);
    System s = make_system(2, {one.take(), other.take()}, {{{0, 1}}});
    s.role_of_rank = {0, 1};
    s.works = {{30_us, 0}, {tied ? 30_us : 20_us, 0}};
    s.transfers = {transfer(1e6, 100, Traffic::tensor)};
    const CriticalPath path = path_of(s, {.cold = true});
    CHECK(path.length() == 40_us);
    CHECK(path.ends == 2);  // both leave the transfer
    // The join's other member; its launch at zero, as that of the kernel, is no chain of its own.
    const auto meets = [](const NearTie& near) {
      return near.other.kind == Instant::Kind::ready && near.slack == Duration{};
    };
    CHECK(std::ranges::count_if(path.near, meets) == (tied ? 1 : 0));
  }
}

TEST_CASE("a transfer on a shared link is longer for its rival", "[why]") {
  // Two ranks send 1 MB each over a link of 100 GB/s at once: alone 10 us, together 20.
  ProgramBuilder b(1);
  b.join(compute_lane, 0, 0, no_cost);
  System s = make_system(2, {b.take()}, {{{0}, {1}}});
  s.transfers = {transfer(1e6, 100)};
  s.link_capacity = {100_GBps};
  s.link_owner = {no_owner};
  for (Communicator& c : s.communicators) c.loads = {{0, 1.0}};
  const CriticalPath path = path_of(s, {.cold = true});
  REQUIRE(path.edges.size() == 1);
  CHECK(path.length() == 20_us);
  CHECK(path.edges[0].extra == 10_us);
}
