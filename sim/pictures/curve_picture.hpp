// Curves over one quantity, a panel each below each other, every one from nothing up on an axis of
// its own. Knows no quantity.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::sim {

struct CurveMark {
  double at = 0;                     // across
  std::optional<double> value = {};  // none: the line is broken
  std::pair<double, double> band{};  // where it may lie; drawn where it has a width
  std::string label = {};            // its tooltip
};

struct CurvePanel {
  std::string title;                     // above it, with the unit
  std::vector<CurveMark> points;         // rising across, the same places in every panel
  std::optional<std::size_t> best = {};  // of the points, with a mark of its own
};

struct CurvePicture {
  std::string title, across;
  std::vector<CurvePanel> panels;
};

/// SVG. Across logarithmic where the places span more than a decade and all are above nothing.
std::string curve_picture(const CurvePicture& picture);

}  // namespace stepcast::sim
