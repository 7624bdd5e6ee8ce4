#include "sim/pictures/waterfall_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/svg.hpp"
#include "sim/pictures/picture_text.hpp"

namespace stepcast::sim {
namespace {

// In user units of the picture: labels, bars, values, notes from left to right.
constexpr double cause_width = 210, bars_left = cause_width + 16, bars_width = 420;
constexpr double value_left = bars_left + bars_width + 10, value_width = 72;
constexpr double note_left = value_left + value_width + 8, note_width = 240;
constexpr double rows_top = 48, row_pitch = 24, bar_height = 15;

/// One row: a whole from the axis' begin, or a change from where the last row ended.
struct WaterfallRow {
  const std::string& label;
  double begin_s, end_s;
  bool whole;
  const std::string& note;

  double change() const { return end_s - begin_s; }
  bool slower() const { return end_s > begin_s; }
  std::string value() const {
    if (whole) return to_text(to_duration(end_s));
    return (slower() ? "+" : "\u2212") + to_text(to_duration(std::abs(change())));
  }
};

std::vector<WaterfallRow> waterfall_rows(const std::string& from, double from_s,
                                         const std::vector<WaterfallBar>& bars,
                                         const std::string& to, double to_s) {
  static const std::string no_note;
  std::vector<WaterfallRow> out{{from, 0, from_s, true, no_note}};
  double level = from_s;
  for (const WaterfallBar& bar : bars) {
    out.push_back({bar.label, level, level + bar.change_s, false, bar.note});
    level += bar.change_s;
  }
  constexpr double rounding = 1e-6;  // of the times: those of reports are decimal
  expects(std::abs(level - to_s) <= rounding * std::max({std::abs(from_s), std::abs(to_s), 1e-6}),
          "changes that add up");
  out.push_back({to, 0, to_s, true, no_note});
  return out;
}

/// Small changes of a long step would be slivers: the axis then begins near them, and says so.
class TimeScale {
 public:
  explicit TimeScale(const std::vector<WaterfallRow>& rows) {
    double lowest = rows.front().end_s;
    for (const WaterfallRow& row : rows) {
      lowest = std::min(lowest, row.end_s);
      most_ = std::max(most_, row.end_s);
    }
    least_ = std::min(0.0, lowest);
    if (most_ <= least_) most_ = least_ + 1;
    if (lowest > 0.6 * most_ && lowest < most_) {
      const auto ticks = round_ticks(0, lowest - 0.4 * (most_ - lowest), 40);
      least_ = ticks.back();
    }
  }
  double x(double s) const {
    return bars_left + bars_width * (std::max(s, least_) - least_) / (most_ - least_);
  }
  double least() const { return least_; }
  std::vector<double> ticks() const { return round_ticks(least_, most_, 6); }

 private:
  double least_ = 0, most_ = 0;
};

/// Slower is filled, faster an outline: to be told apart without colours.
std::string bar_of(const WaterfallRow& row, const TimeScale& scale, double top) {
  const double begin = scale.x(row.whole ? scale.least() : row.begin_s), end = scale.x(row.end_s);
  const auto colour = row.whole ? svg_ink : svg_colours[row.slower() ? 1 : 0];
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" "
      "fill=\"{}\" fill-opacity=\"{}\" stroke=\"{}\"><title>{}</title></rect>\n",
      row.whole      ? "whole"
      : row.slower() ? "slower"
                     : "faster",
      std::min(begin, end), top, std::max(std::abs(end - begin), 0.5), bar_height, colour,
      row.whole || row.slower() ? ".8" : ".15", colour,
      svg_escaped(row.label + ": " + row.value() + (row.note.empty() ? "" : ", " + row.note)));
}

std::string row_text(const WaterfallRow& row, double top) {
  const double base = top + 12;
  std::string out = fmt::format(
      "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n"
      "<text x=\"{}\" y=\"{:.1f}\">{}</text>\n",
      bars_left - 8, base, svg_escaped(cut_text(row.label, cause_width)), value_left, base,
      row.value());
  if (!row.note.empty())
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{}</text>\n", note_left, base,
                       svg_escaped(cut_text(row.note, note_width)));
  return out;
}

/// From the end of each row to the next.
std::string joints(const std::vector<WaterfallRow>& rows, const TimeScale& scale) {
  std::string path;
  for (std::size_t i = 0; i + 1 < rows.size(); ++i)
    path += fmt::format("M{:.2f} {:.1f}v{}", scale.x(rows[i].end_s),
                        rows_top + row_pitch * static_cast<double>(i) + bar_height,
                        row_pitch - bar_height);
  return fmt::format("<path d=\"{}\" stroke=\"{}\" fill=\"none\"/>\n", path, svg_ink);
}

std::string time_axis(const TimeScale& scale, double bottom) {
  std::string lines, out;
  for (const double tick : scale.ticks()) {
    lines += fmt::format("M{:.1f} {}V{}", scale.x(tick), rows_top - 6, bottom);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g} s</text>\n",
                       scale.x(tick), bottom + 16, tick);
  }
  out += fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-opacity=\".25\" fill=\"none\"/>\n", lines,
                     svg_ink);
  if (scale.least() > 0)
    out += fmt::format("<text x=\"{}\" y=\"{}\">the axis begins at {:g} s</text>\n", bars_left,
                       bottom + 34, scale.least());
  return out;
}

}  // namespace

std::string waterfall_picture(const std::string& from, double from_s,
                              const std::vector<WaterfallBar>& bars, const std::string& to,
                              double to_s, const std::string& title) {
  const std::vector<WaterfallRow> rows = waterfall_rows(from, from_s, bars, to, to_s);
  const TimeScale scale(rows);
  const bool notes = std::ranges::any_of(bars, [](const auto& bar) { return !bar.note.empty(); });
  const double bottom = rows_top + row_pitch * static_cast<double>(rows.size());
  const double width = notes ? note_left + note_width : value_left + value_width;
  std::string out = svg_head(width, bottom + 44, title) + fmt::format("<g fill=\"{}\">\n", svg_ink);
  out += fmt::format("<text x=\"8\" y=\"22\" font-size=\"16\">{}</text>\n",
                     svg_escaped(cut_text(title, width * 12 / 16)));
  out += time_axis(scale, bottom) + joints(rows, scale);
  double top = rows_top;
  for (const WaterfallRow& row : rows) {
    out += bar_of(row, scale, top) + row_text(row, top);
    top += row_pitch;
  }
  return out + "</g>\n</svg>\n";
}

}  // namespace stepcast::sim
