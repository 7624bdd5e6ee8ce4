// Choices as points of what they take in two ways, those that no other beats in both joined. Knows
// no plan and no machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::sim {

/// A chosen point is told by its sign's shape and word; a point may have several.
enum class ParetoSign : std::uint8_t { diamond, square, triangle };

struct ParetoPoint {
  double across = 0, up = 0;  // the less the better, of both
  std::string label = {};     // its tooltip: what it is, with its figures
  bool on_front = false;
  std::vector<ParetoSign> signs = {};
};

struct ParetoAxis {
  std::string title;  // "memory per GPU, GiB"
  double limit = 0;   // a dashed line there; 0: none
  std::string limit_text = {};
};

struct ParetoPicture {
  std::string title;
  ParetoAxis across, up;
  std::string point_meaning, front_meaning;  // in the legend
  std::vector<std::string> sign_words = {};  // of the signs in their order
  std::vector<ParetoPoint> points = {};
};

/// `on_front` of each: no other takes less in one way and no more in the other.
void mark_front(std::vector<ParetoPoint>& points);

/// SVG. Across from nothing on; upwards logarithmic, so that a bad point leaves the good ones
/// apart. Signed points are told below.
std::string pareto_picture(const ParetoPicture& picture);

}  // namespace stepcast::sim
