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
  for (const bool marked : {true, false})
    for (const bool cold : {false, true})
      for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(marked, cold, seed);
        const System s = random_system(seed, marked);
        const CriticalPath path = path_of(s, {.cold = cold});  // ensures the sum
        CHECK(is_chain(path));
      }
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
