#include "sim/files/suggest.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using stepcast::sim::closest;
using stepcast::sim::suggestion;

TEST_CASE("a mistyped word finds the known one") {
  const std::vector<std::string> options{"--nodes", "--model", "--micro-batch", "--json"};
  CHECK(closest("--node", options) == "--nodes");
  CHECK(closest("--micro_batch", options) == "--micro-batch");
  CHECK(closest("--jsno", options) == "--json");
}

TEST_CASE("a word like none of the known ones gets no suggestion") {
  const std::vector<std::string> options{"tensor", "pipeline"};
  CHECK_FALSE(closest("frobnicate", options));
  CHECK_FALSE(closest("x", options));
  CHECK_FALSE(closest("anything", std::vector<std::string>{}));
}

TEST_CASE("a list of the known words names each once") {
  const std::vector<std::string> versions{"2.3", "2.7", "2.3", "2.7"};
  CHECK(suggestion("frobnicate", versions) == "known: 2.3, 2.7");
  CHECK(suggestion("2.33", versions) == "did you mean '2.3'?");
  CHECK(suggestion("anything", std::vector<std::string>{}).empty());
}
