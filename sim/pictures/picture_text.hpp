// What pictures with axes share: round numbers along an axis, and how much room a text takes. Knows
// no picture.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stepcast::sim {

/// Multiples of 1, 2 or 5 times a power of ten in [low, high], at most `most` of them.
std::vector<double> round_ticks(double low, double high, std::size_t most);

/// 1, 2 and 5 of every decade in [low, high], which are above nothing.
std::vector<double> decade_ticks(double low, double high);

/// A wide guess at the width of a text of svg_head's font, in user units: the font is the reader's.
double text_width(const std::string& text);

/// Cut at `width` user units, with an ellipsis.
std::string cut_text(const std::string& text, double width);

/// Lines of at most `width` user units, broken at blanks, the last one cut where there are more
/// than `most`.
std::vector<std::string> wrapped_text(const std::string& text, double width, std::size_t most);

/// A box that text stands in.
struct TextBox {
  double left = 0, top = 0, width = 0, height = 0;
  bool overlaps(const TextBox& other) const;
};

}  // namespace stepcast::sim
