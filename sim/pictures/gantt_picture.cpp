#include "sim/pictures/gantt_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/files/svg.hpp"
#include "sim/pictures/bar_picture.hpp"
#include "sim/pictures/picture_text.hpp"

namespace stepcast::sim {
namespace {

// In user units of the picture.
constexpr double gantt_left = 110, gantt_room = 800, gantt_pitch = 26, gantt_thick = 20;
constexpr double least_mark = 0.6;   // narrower spans and gaps are not listed apart
constexpr double least_gap = 3;      // narrower gaps between spans of a series are not drawn
constexpr double hatched_from = 16;  // two tiles of a pattern: in less it is mush
// Series of a row stand on one line and are told apart by height too, so that short turns of two of
// them read as a block in two steps.
constexpr double gantt_heights[] = {gantt_thick, 13, 7, 3};

double x_at(double s, const GanttPicture& picture) {
  return gantt_left + gantt_room * s / picture.length_s;
}

/// The spans of one series, those that nearly touch as one.
std::vector<GanttSpan> joined(const GanttRow& row, std::size_t series, double least_s) {
  std::vector<GanttSpan> out;
  for (const GanttSpan& span : row.spans) {
    if (span.series != series) continue;
    if (!out.empty() && span.from_s - out.back().to_s < least_s) {
      out.back().to_s = std::max(out.back().to_s, span.to_s);
      if (out.back().label != span.label) out.back().label.clear();
    } else {
      out.push_back(span);
    }
  }
  return out;
}

std::string gantt_span(const GanttSpan& span, const GanttPicture& picture, double top,
                       double height) {
  const double from = x_at(span.from_s, picture), to = x_at(span.to_s, picture);
  if (to - from < least_mark / 4) return {};
  const bool hatched = to - from >= hatched_from;
  std::string out =
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"",
                  from, top + gantt_thick - height, std::max(to - from, 0.3), height,
                  hatched ? look_fill(picture.name, span.series)
                          : std::string(svg_colours[span.series % std::size(svg_colours)]));
  return out + (span.label.empty()
                    ? "/>\n"
                    : fmt::format("><title>{}</title></rect>\n", svg_escaped(span.label)));
}

std::string gantt_row(const GanttRow& row, const GanttPicture& picture, double top) {
  std::string out =
      fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", gantt_left - 8,
                  top + 14, svg_escaped(cut_text(row.label, gantt_left - 12)));
  const double least_s = least_gap / gantt_room * picture.length_s;
  std::size_t step = 0;
  for (std::size_t series = 0; series < picture.series.size(); ++series) {
    const std::vector<GanttSpan> spans = joined(row, series, least_s);
    for (const GanttSpan& span : spans) out += gantt_span(span, picture, top, gantt_heights[step]);
    if (!spans.empty()) step = std::min(step + 1, std::size(gantt_heights) - 1);
  }
  return out;
}

std::string gantt_axis(const GanttPicture& picture, double top, double bottom) {
  std::string lines, out;
  for (const double tick : round_ticks(0, picture.length_s, 9)) {
    lines += fmt::format("M{:.1f} {}V{}", x_at(tick, picture), top - 4, bottom);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g} s</text>\n",
                       x_at(tick, picture), bottom + 15, tick);
  }
  return fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-opacity=\".3\" fill=\"none\"/>\n", lines,
                     svg_ink) +
         out;
}

}  // namespace

std::vector<GanttSpan> drawn_spans(const GanttRow& row, const GanttPicture& picture) {
  const double least_s = least_mark / gantt_room * picture.length_s;
  std::vector<GanttSpan> out;
  for (const GanttSpan& span : row.spans) {
    if (!out.empty() && out.back().series == span.series && span.from_s - out.back().to_s < least_s)
      out.back().to_s = std::max(out.back().to_s, span.to_s);
    else
      out.push_back(span);
  }
  return out;
}

std::string gantt_picture(const GanttPicture& picture) {
  const double width = gantt_left + gantt_room + 30;
  double top = 44;
  const std::string legend = look_legend(picture.name, picture.series, 8, top, width, top);
  top += 18;
  const double bottom = top + gantt_pitch * static_cast<double>(picture.rows.size());
  std::string out = svg_head(width, bottom + 24, picture.title) +
                    look_definitions(picture.name, picture.series.size()) +
                    fmt::format("<g fill=\"{}\">\n", svg_ink) +
                    fmt::format("<text x=\"8\" y=\"22\" font-size=\"16\">{}</text>\n",
                                svg_escaped(cut_text(picture.title, width * 12 / 16))) +
                    legend + gantt_axis(picture, top, bottom);
  double y = top + (gantt_pitch - gantt_thick) / 2;
  for (const GanttRow& row : picture.rows) {
    out += gantt_row(row, picture, y);
    y += gantt_pitch;
  }
  return out + "</g>\n</svg>\n";
}

}  // namespace stepcast::sim
