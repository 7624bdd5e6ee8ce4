#include "engine/edit_distance.hpp"

#include <catch2/catch.hpp>

using stepcast::edit_distance;

TEST_CASE("the distance between words counts single typing mistakes") {
  CHECK(edit_distance("nodes", "nodes") == 0);
  CHECK(edit_distance("nodse", "nodes") == 1);  // swap
  CHECK(edit_distance("node", "nodes") == 1);
  CHECK(edit_distance("nokes", "nodes") == 1);
  CHECK(edit_distance("Nodes", "nodes") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
}
