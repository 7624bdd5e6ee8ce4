// From one step time to another, a bar for each cause between them. Knows no cause.
#pragma once

#include <string>
#include <vector>

namespace stepcast::sim {

struct WaterfallBar {
  std::string label = {};
  double change_s = 0;  // more than nothing: slower
  std::string note = {};
};

/// SVG: a row for `from`, for each bar, for `to`. The changes add up to to_s - from_s.
std::string waterfall_picture(const std::string& from, double from_s,
                              const std::vector<WaterfallBar>& bars, const std::string& to,
                              double to_s, const std::string& title);

}  // namespace stepcast::sim
