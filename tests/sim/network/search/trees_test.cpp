#include "sim/network/search/trees.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <vector>

using namespace stepcast::sim;

TEST_CASE("eight nodes have the tree of the picture, and its mirror") {
  CHECK(tree_place(8, 0, 0) == TreePlace{-1, {-1, 4}});
  CHECK(tree_place(8, 4, 0) == TreePlace{0, {2, 6}});
  CHECK(tree_place(8, 6, 0) == TreePlace{4, {5, 7}});
  CHECK(tree_place(8, 5, 0) == TreePlace{6, {-1, -1}});
  CHECK(tree_place(8, 7, 1) == TreePlace{-1, {-1, 3}});
  CHECK(tree_place(8, 3, 1) == TreePlace{7, {5, 1}});
  // An odd number of nodes: the same tree, moved on by one.
  CHECK(tree_place(5, 1, 1) == TreePlace{-1, {-1, 0}});
  CHECK(tree_place(5, 0, 1) == TreePlace{1, {3, -1}});
}

TEST_CASE("both trees reach every node, parents and children agree") {
  for (std::int64_t nodes = 1; nodes <= 260; ++nodes)
    for (const int tree : {0, 1}) {
      std::int64_t roots = 0, edges = 0;
      for (std::int64_t node = 0; node < nodes; ++node) {
        const TreePlace place = tree_place(nodes, node, tree);
        roots += place.parent < 0 ? 1 : 0;
        for (const std::int64_t child : place.children) {
          if (child < 0) continue;
          ++edges;
          if (tree_place(nodes, child, tree).parent != node) FAIL(nodes << " " << node);
        }
      }
      if (roots != 1 || edges != nodes - 1) FAIL(nodes << " nodes, tree " << tree);
    }
}

TEST_CASE("a tree is at most log2 N levels and one deep") {
  for (std::int64_t nodes = 2; nodes <= 600; ++nodes)
    for (const int tree : {0, 1})
      for (std::int64_t node = 0; node < nodes; ++node)
        if (tree_level(nodes, node, tree) >
            static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(nodes - 1))))
          FAIL(nodes << " nodes, node " << node);
}

TEST_CASE("a node has two children in one of the trees only") {
  // The root of one may be inside the other: it has one child.
  for (std::int64_t nodes = 2; nodes <= 600; ++nodes)
    for (std::int64_t node = 0; node < nodes; ++node) {
      int inner = 0;
      for (const int tree : {0, 1}) {
        const TreePlace place = tree_place(nodes, node, tree);
        if (place.parent >= 0 && (place.children[0] >= 0 || place.children[1] >= 0)) ++inner;
      }
      if (inner > 1) FAIL(nodes << " nodes, node " << node);
    }
}
