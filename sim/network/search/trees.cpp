#include "sim/network/search/trees.hpp"

#include <bit>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

/// The height of a node is its lowest set bit. Its parent is the neighbour one height up: that bit
/// cleared and the next one set, or only cleared where that would be past the end. Node 0 is the
/// root, above the highest of all.
TreePlace first_tree(std::int64_t nodes, std::int64_t node) {
  TreePlace place;
  if (node == 0) {
    if (nodes > 1)
      place.children[1] =
          static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(nodes)) / 2);
    return place;
  }
  const std::int64_t bit = node & -node;
  const std::int64_t cleared = node ^ bit;
  const std::int64_t above = cleared | (bit << 1);
  place.parent = above < nodes ? above : cleared;
  if (bit == 1) return place;
  place.children[0] = node - bit / 2;
  for (std::int64_t step = bit / 2; step > 0 && place.children[1] < 0; step /= 2)
    if (node + step < nodes) place.children[1] = node + step;
  return place;
}

}  // namespace

TreePlace tree_place(std::int64_t nodes, std::int64_t node, int tree) {
  expects(node >= 0 && node < nodes && (tree == 0 || tree == 1), "a node of one of the two trees");
  if (tree == 0) return first_tree(nodes, node);
  const bool mirrored = nodes % 2 == 0;
  const auto moved = [&](std::int64_t at) { return mirrored ? nodes - 1 - at : (at + 1) % nodes; };
  const std::int64_t source = mirrored ? nodes - 1 - node : (node + nodes - 1) % nodes;
  TreePlace place = first_tree(nodes, source);
  if (place.parent >= 0) place.parent = moved(place.parent);
  for (std::int64_t& child : place.children)
    if (child >= 0) child = moved(child);
  return place;
}

std::int64_t tree_level(std::int64_t nodes, std::int64_t node, int tree) {
  std::int64_t level = 0;
  for (std::int64_t up = tree_place(nodes, node, tree).parent; up >= 0; ++level)
    up = tree_place(nodes, up, tree).parent;
  return level;
}

}  // namespace stepcast::sim
