#include "sim/pictures/curve_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "sim/files/svg.hpp"
#include "sim/pictures/picture_text.hpp"

namespace stepcast::sim {
namespace {

// In user units of the picture.
constexpr double curve_left = 66, curve_width = 580, panel_height = 130, panel_pitch = 184,
                 first_panel = 66;

/// From the first place to the last.
class Across {
 public:
  explicit Across(const std::vector<CurveMark>& points)
      : low_(points.front().at),
        high_(points.back().at),
        logarithmic_(low_ > 0 && high_ > 10 * low_) {}

  double x(double at) const {
    const double part =
        logarithmic_ ? std::log(at / low_) / std::log(high_ / low_) : (at - low_) / (high_ - low_);
    return curve_left + curve_width * part;
  }
  std::vector<double> ticks() const {
    return logarithmic_ ? decade_ticks(low_, high_) : round_ticks(low_, high_, 9);
  }

 private:
  double low_, high_;
  bool logarithmic_;
};

class Panel {
 public:
  Panel(const CurvePanel& panel, const Across& across, double top)
      : panel_(panel), across_(across), top_(top) {
    for (const CurveMark& p : panel.points)
      most_ = std::max({most_, p.value.value_or(0), p.value ? p.band.second : 0});
    most_ = most_ > 0 ? 1.06 * most_ : 1;
  }

  std::string drawn() const { return grid() + bands() + lines() + marks(); }

 private:
  double y(double value) const { return top_ + panel_height * (1 - value / most_); }
  double x(const CurveMark& p) const { return across_.x(p.at); }

  std::string grid() const {
    std::string out = fmt::format("<text x=\"{}\" y=\"{:.1f}\">{}</text>\n", curve_left, top_ - 9,
                                  svg_escaped(cut_text(panel_.title, curve_width)));
    std::string path;
    for (const double tick : round_ticks(0, most_, 5)) {
      path += fmt::format("M{} {:.1f}h{}", curve_left, y(tick), curve_width);
      out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
                         curve_left - 7, y(tick) + 4, tick);
    }
    for (const double tick : across_.ticks()) {
      path += fmt::format("M{:.1f} {:.1f}v{}", across_.x(tick), top_, panel_height);
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>\n",
                         across_.x(tick), top_ + panel_height + 17, tick);
    }
    return out +
           fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-opacity=\".25\" fill=\"none\"/>\n",
                       path, svg_ink);
  }

  /// Points that follow each other with values, in the order of the places.
  std::vector<std::vector<const CurveMark*>> pieces() const {
    std::vector<std::vector<const CurveMark*>> out(1);
    for (const CurveMark& p : panel_.points) {
      if (p.value)
        out.back().push_back(&p);
      else if (!out.back().empty())
        out.emplace_back();
    }
    return out;
  }

  std::string bands() const {
    std::string out;
    for (const auto& piece : pieces()) {
      const bool wide = std::ranges::any_of(
          piece, [](const CurveMark* p) { return p->band.second > p->band.first; });
      if (!wide) continue;
      std::string path;
      const auto to = [&](const CurveMark* p, double value) {
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(*p), y(value));
      };
      for (const CurveMark* p : piece) to(p, p->band.second);
      for (auto p = piece.rbegin(); p != piece.rend(); ++p) to(*p, (*p)->band.first);
      out += fmt::format("<path class=\"band\" d=\"{}Z\" fill=\"{}\" fill-opacity=\".2\"/>\n", path,
                         svg_colours[0]);
    }
    return out;
  }

  std::string lines() const {
    std::string path;
    for (const auto& piece : pieces())
      for (const CurveMark* p : piece)
        path += fmt::format("{}{:.1f} {:.1f}", p == piece.front() ? "M" : "L", x(*p), y(*p->value));
    return fmt::format(
        "<path class=\"curve\" d=\"{}\" stroke=\"{}\" stroke-width=\"1.8\" fill=\"none\"/>\n", path,
        svg_colours[0]);
  }

  /// The best alone where so many would be one thick line.
  std::string marks() const {
    constexpr std::size_t most_marks = 200;
    const bool all = panel_.points.size() <= most_marks;
    std::string out;
    for (std::size_t i = 0; i < panel_.points.size(); ++i) {
      const CurveMark& p = panel_.points[i];
      const bool best = panel_.best == i;
      if (!p.value || !(all || best)) continue;
      out += fmt::format(
          "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" stroke=\"{}\" "
          "stroke-width=\"1.5\"><title>{}</title></circle>\n",
          best ? "best" : "point", x(p), y(*p.value), best ? 7 : 3, best ? "none" : svg_colours[0],
          best ? svg_ink : svg_colours[0], svg_escaped(p.label));
    }
    return out;
  }

  const CurvePanel& panel_;
  const Across& across_;
  double top_, most_ = 0;
};

}  // namespace

std::string curve_picture(const CurvePicture& picture) {
  expects(!picture.panels.empty(), "a curve");
  for (const CurvePanel& panel : picture.panels)
    expects(panel.points.size() > 1 && panel.points.front().at < panel.points.back().at,
            "places that rise");
  const Across across(picture.panels.front().points);
  double top = first_panel;
  std::string panels;
  for (const CurvePanel& panel : picture.panels) {
    panels += Panel(panel, across, top).drawn();
    top += panel_pitch;
  }
  const double bottom = top - panel_pitch + panel_height + 40;
  return svg_head(curve_left + curve_width + 34, bottom + 10, picture.title) +
         fmt::format("<g fill=\"{}\">\n", svg_ink) +
         fmt::format("<text x=\"{}\" y=\"22\" font-size=\"16\">{}</text>\n", curve_left,
                     svg_escaped(cut_text(picture.title, curve_width * 12 / 16))) +
         panels +
         fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     curve_left + curve_width / 2, bottom, svg_escaped(picture.across)) +
         "</g>\n</svg>\n";
}

}  // namespace stepcast::sim
