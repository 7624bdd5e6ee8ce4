// Predicted against measured as one SVG: equal logarithmic axes, the diagonal, a band around it, a
// colour and mark per source. Legible on light and dark pages. Knows no model and no units.
#pragma once

#include <string>
#include <vector>

namespace stepcast::validate {

struct FigurePoint {
  double x = 0, y = 0;  // measured, predicted; both positive
  std::string source;   // its group in the legend
};

struct FigureText {
  std::string title;
  std::string x_axis, y_axis;  // with the unit
};

/// `band` is a share: 0.1 shades predictions within 10 % of the measurement. The legend, largest
/// source first, says how many points of each lie inside. No point at all is an empty figure.
std::string scatter_svg(const std::vector<FigurePoint>& points, const FigureText& text,
                        double band);

}  // namespace stepcast::validate
