#include "sim/pictures/bar_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "sim/files/svg.hpp"
#include "sim/pictures/picture_text.hpp"

namespace stepcast::sim {
namespace {

// In user units of the picture.
constexpr double least_left = 190, most_left = 360, bar_room = 460, least_value_room = 110;
constexpr double bar_pitch = 28, bar_thick = 18;

/// What is drawn over a look's colour in a tile of 8 x 8: nothing, then lines and dots.
constexpr std::array<std::string_view, 8> tiles = {"",
                                                   "M-1 9L9 -1M-1 1L1 -1M7 9L9 7",
                                                   "M-1 -1L9 9M7 -1L9 1M-1 7L1 9",
                                                   "M0 4h8",
                                                   "M4 0v8",
                                                   "M3 4h2",
                                                   "M-1 9L9 -1M-1 -1L9 9",
                                                   "M0 4h8M4 0v8"};

/// Where bars lie: beside the longest label, before the longest value.
struct BarScale {
  double least = 0, most = 1, left = least_left, value_room = least_value_room;
  double x(double value) const { return left + bar_room * (value - least) / (most - least); }
  double right() const { return left + bar_room; }
  double width() const { return right() + value_room; }
};

BarScale scale_of(const BarPicture& picture) {
  BarScale out;
  double most = picture.limit.value_or(0);
  for (const BarRow& row : picture.rows) {
    const double sum = std::accumulate(row.parts.begin(), row.parts.end(), 0.0);
    most = std::max(most, sum);
    out.least = std::min(out.least, sum);
    out.left = std::clamp(text_width(row.label) + 16, out.left, most_left);
    out.value_room = std::max(out.value_room, text_width(row.value) + 12);
  }
  out.most = most > out.least ? most : out.least + 1;
  return out;
}

std::string bar_row(const BarPicture& picture, const BarRow& row, const BarScale& scale,
                    double top) {
  std::string out =
      fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", scale.left - 8,
                  top + 13, svg_escaped(cut_text(row.label, scale.left - 14)));
  double at = 0;
  for (std::size_t i = 0; i < row.parts.size(); ++i) {
    const double next = at + row.parts[i];
    const double from = scale.x(std::min(at, next)), to = scale.x(std::max(at, next));
    at = next;
    if (to - from <= 0) continue;
    const std::string& of = picture.series[i];
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
        "stroke=\"{}\" stroke-width=\".5\"><title>{}</title></rect>\n",
        from, top, std::max(to - from, 0.5), bar_thick, look_fill(picture.name, i), svg_ink,
        svg_escaped(fmt::format("{}{}{}: {:.4g} {}", row.label, of.empty() ? "" : ", ", of,
                                row.parts[i], picture.axis)));
  }
  return out + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", scale.right() + 8,
                           top + 13, svg_escaped(row.value));
}

std::string bar_axis(const BarPicture& picture, const BarScale& scale, double top, double bottom) {
  std::string lines, out;
  for (const double tick : round_ticks(scale.least, scale.most, 7)) {
    lines += fmt::format("M{:.1f} {}V{}", scale.x(tick), top - 4, bottom);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n",
                       scale.x(tick), bottom + 15, tick);
  }
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     scale.left + bar_room / 2, bottom + 33, svg_escaped(picture.axis));
  return fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-opacity=\".3\" fill=\"none\"/>\n", lines,
                     svg_ink) +
         out;
}

std::string limit_line(const BarPicture& picture, const BarScale& scale, double top,
                       double bottom) {
  if (!picture.limit) return "";
  const double x = scale.x(*picture.limit);
  return fmt::format(
      "<path d=\"M{0:.1f} {1}V{2}\" stroke=\"{3}\" stroke-width=\"2\" stroke-dasharray=\"6 4\" "
      "fill=\"none\"/>\n<text x=\"{0:.1f}\" y=\"{4}\" text-anchor=\"end\">{5}</text>\n",
      x, top - 6, bottom, svg_ink, top - 9, svg_escaped(picture.limit_text));
}

}  // namespace

std::string look_definitions(const std::string& name, std::size_t count) {
  std::string out = "<defs>\n";
  for (std::size_t i = 0; i < std::min(count, tiles.size()); ++i)
    out += fmt::format(
        "<pattern id=\"{}-{}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
        "<path d=\"M0 0h8v8h-8Z\" fill=\"{}\"/><path d=\"{}\" stroke=\"#fff\" stroke-width=\"2\" "
        "fill=\"none\"/></pattern>\n",
        svg_escaped(name), i, svg_colours[i], tiles[i]);
  return out + "</defs>\n";
}

std::string look_fill(const std::string& name, std::size_t index) {
  return fmt::format("url(#{}-{})", svg_escaped(name), index % tiles.size());
}

std::string look_legend(const std::string& name, const std::vector<std::string>& series,
                        double left, double top, double right, double& bottom) {
  std::string out;
  double x = left, y = top;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const double width = 20 + text_width(series[i]) + 14;
    if (x > left && x + width > right) x = left, y += 18;
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"12\" fill=\"{}\"/>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        x, y - 10, look_fill(name, i), x + 20, y, svg_escaped(series[i]));
    x += width;
  }
  bottom = y;
  return out;
}

std::string bar_picture(const BarPicture& picture) {
  const BarScale scale = scale_of(picture);
  double top = 44;
  std::string legend;
  if (picture.series.size() > 1 || !picture.series.front().empty()) {
    legend = look_legend(picture.name, picture.series, 8, top, scale.width(), top);
    top += 18;
  }
  if (picture.limit) top += 14;
  top += 6;
  const double bottom = top + bar_pitch * static_cast<double>(picture.rows.size());
  std::string out = svg_head(scale.width(), bottom + 42, picture.title) +
                    look_definitions(picture.name, picture.series.size()) +
                    fmt::format("<g fill=\"{}\">\n", svg_ink) +
                    fmt::format("<text x=\"8\" y=\"22\" font-size=\"16\">{}</text>\n",
                                svg_escaped(cut_text(picture.title, scale.right() * 12 / 16))) +
                    legend + bar_axis(picture, scale, top, bottom);
  double y = top + (bar_pitch - bar_thick) / 2;
  for (const BarRow& row : picture.rows) {
    out += bar_row(picture, row, scale, y);
    y += bar_pitch;
  }
  return out + limit_line(picture, scale, top, bottom) + "</g>\n</svg>\n";
}

}  // namespace stepcast::sim
