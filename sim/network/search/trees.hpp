// NCCL's double binary tree over nodes: two trees of the same shape, so placed that almost every
// node has children in one of them only. Each carries half of the bytes (trees.cc, v2.28.9-1).
//
//   first tree, 8 nodes      second: the mirror of it (even), or shifted by one node (odd)
//      0                        7
//       \                      /
//        4                    3
//      /   \                /   \       .
//     2     6              1     5
//    / \   / \            / \   / \     .
//   1   3 5   7          0   2 4   6
#pragma once

#include <array>
#include <cstdint>

namespace stepcast::sim {

/// Of one node; -1 where there is none.
struct TreePlace {
  std::int64_t parent = -1;
  std::array<std::int64_t, 2> children{-1, -1};

  friend bool operator==(const TreePlace&, const TreePlace&) = default;
};

/// Tree 0 or 1 over `nodes` nodes.
TreePlace tree_place(std::int64_t nodes, std::int64_t node, int tree);

/// Levels between the root and the node.
std::int64_t tree_level(std::int64_t nodes, std::int64_t node, int tree);

}  // namespace stepcast::sim
