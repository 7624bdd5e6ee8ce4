// The worked example of engine/README.md, as its page has it: the build writes the page's code into
// engine_readme.inc.
#include <catch2/catch.hpp>

#include "engine/run.hpp"

using namespace stepcast;
using namespace stepcast::engine;

TEST_CASE("the example of engine/README.md compiles and takes what the page says") {
#include "engine_readme.inc"
  CHECK(result.step == 42_us);
  for (const RankAccount& rank : result.ranks) {
    CHECK(rank.compute == 22_us);
    CHECK(rank.exposed[static_cast<std::size_t>(Traffic::data)] == 20_us);
    CHECK(rank.total() == result.step);
  }
}
