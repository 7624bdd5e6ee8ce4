// The rings of concurrent_rings.hpp against SimGrid 3.32 (CM02, cross-traffic off; recorded
// 2026-11-21).
#include <catch2/catch.hpp>

#include "tests/engine/concurrent_rings.hpp"

using namespace stepcast;
using namespace stepcast::engine::concurrent_rings;

TEST_CASE("64 concurrent rings on a fat tree end when SimGrid 3.32 says") {
  struct Case {
    Tree tree;
    double simgrid;
  };
  const auto c = GENERATE(Case{{256, 32}, 0.110020}, Case{{1024, 32}, 0.137505},
                          Case{{2048, 32}, 0.142085}, Case{{2048, 8}, 0.519690});
  const bool one_per_edge = GENERATE(false, true);
  INFO(c.tree.hosts << " hosts, " << c.tree.spines << " spines, "
                    << (one_per_edge ? "one flow per edge" : "one variable per collective"));
  CHECK(makespan(c.tree, transfers_of(c.tree, one_per_edge)) == Approx(c.simgrid).epsilon(1e-5));
}
