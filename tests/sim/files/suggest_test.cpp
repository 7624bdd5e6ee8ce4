#include "sim/files/suggest.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using stepcast::sim::closest;
using stepcast::sim::edit_distance;
using stepcast::sim::suggestion;

TEST_CASE("the distance between words counts single typing mistakes") {
  CHECK(edit_distance("nodes", "nodes") == 0);
  CHECK(edit_distance("nodse", "nodes") == 1);  // swap
  CHECK(edit_distance("node", "nodes") == 1);
  CHECK(edit_distance("nokes", "nodes") == 1);
  CHECK(edit_distance("Nodes", "nodes") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

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
