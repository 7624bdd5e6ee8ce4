// What rows do when: spans on a common axis of time, told apart by pattern as well as colour. Knows
// no pipeline.
#pragma once

#include <string>
#include <vector>

namespace stepcast::sim {

struct GanttSpan {
  double from_s = 0, to_s = 0;
  std::size_t series = 0;
  std::string label{};  // its tooltip
};

struct GanttRow {
  std::string label;
  std::vector<GanttSpan> spans;  // in the order of time
};

struct GanttPicture {
  std::string name;  // unique among the pictures of a page
  std::string title;
  std::vector<std::string> series{};
  std::vector<GanttRow> rows{};
  double length_s = 0;
};

/// What is drawn of a row: spans that are too short to be seen are joined with those of the same
/// series beside them, so that a row has no more marks than can be told apart.
std::vector<GanttSpan> drawn_spans(const GanttRow& row, const GanttPicture& picture);

std::string gantt_picture(const GanttPicture& picture);

}  // namespace stepcast::sim
