#include "validate/compare/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/check.hpp"
#include "sim/files/svg.hpp"

namespace stepcast::validate {
namespace {

// In user units of the figure, which a page scales as it likes.
constexpr double left = 70, top = 48, side = 480, legend_left = left + side + 18;
constexpr double width = legend_left + 150, height = top + side + 56, line_height = 16;

constexpr std::string_view ink = sim::svg_ink;
constexpr auto& colours = sim::svg_colours;
enum class Mark : std::uint8_t { dot, cross, plus, bar };
constexpr std::size_t num_marks = 4;

using sim::svg_escaped;

/// Both axes show the same range, so that the diagonal is "as measured".
class Scale {
 public:
  explicit Scale(const std::vector<FigurePoint>& points) {
    low_ = std::numeric_limits<double>::max();
    for (const FigurePoint& p : points) {
      low_ = std::min({low_, p.x, p.y});
      high_ = std::max({high_, p.x, p.y});
    }
    if (points.empty()) low_ = 1, high_ = 10;
    low_ /= margin;
    high_ *= margin;
  }

  double low() const { return low_; }
  double high() const { return high_; }
  double x(double value) const { return left + share(value) * side; }
  double y(double value) const { return top + (1 - share(value)) * side; }

  /// 1, 2 and 5 of every decade; the tens alone where that is more than fits.
  std::vector<double> ticks() const {
    const bool few = std::log10(high_ / low_) > 5;
    std::vector<double> out;
    for (double decade = std::floor(std::log10(low_)); decade <= std::log10(high_); ++decade)
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double tick = digit * std::pow(10.0, decade);
        if (tick >= low_ && tick <= high_ && (digit == 1.0 || !few)) out.push_back(tick);
      }
    return out;
  }

 private:
  static constexpr double margin = 1.15;
  double share(double value) const { return std::log(value / low_) / std::log(high_ / low_); }
  double low_ = 0, high_ = 0;
};

struct Group {
  std::string source;
  std::vector<const FigurePoint*> points;
  std::size_t inside = 0;  // the band
};

bool within(const FigurePoint& p, double band) { return std::abs(p.y / p.x - 1) <= band; }

/// Largest first, then by name.
std::vector<Group> groups_of(const std::vector<FigurePoint>& points, double band) {
  std::map<std::string, Group> by_source;
  for (const FigurePoint& p : points) {
    Group& group = by_source[p.source];
    group.source = p.source;
    group.points.push_back(&p);
    if (within(p, band)) ++group.inside;
  }
  std::vector<Group> out;
  for (auto& [source, group] : by_source) out.push_back(std::move(group));
  std::stable_sort(out.begin(), out.end(), [](const Group& a, const Group& b) {
    return a.points.size() > b.points.size();
  });
  return out;
}

std::string mark_path(double x, double y, Mark mark) {
  switch (mark) {
    case Mark::dot:  // its round line cap
      return fmt::format("M{:.1f} {:.1f}h.01", x, y);
    case Mark::cross:
      return fmt::format("M{:.1f} {:.1f}l5 5m0-5l-5 5", x - 2.5, y - 2.5);
    case Mark::plus:
      return fmt::format("M{:.1f} {:.1f}h6m-3-3v6", x - 3, y);
    case Mark::bar:
      return fmt::format("M{:.1f} {:.1f}h6", x - 3, y);
  }
  throw BrokenPromise("a mark without a path");
}

/// Neighbours of the legend differ by mark as well as by colour: all pairs of the two before any
/// comes again.
Mark mark_of(std::size_t group) {
  return static_cast<Mark>((group + group / colours.size()) % num_marks);
}

/// All marks of a group are one path: a few bytes per point.
std::string marks(const std::string& path, std::size_t group) {
  const Mark mark = mark_of(group);
  return fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>\n", path,
                     colours[group % colours.size()], mark == Mark::dot ? "5" : "1.8");
}

std::string grid(const Scale& scale) {
  std::string lines, labels;
  for (const double tick : scale.ticks()) {
    const double x = scale.x(tick), y = scale.y(tick);
    lines += fmt::format("M{:.1f} {}v{}M{} {:.1f}h{}", x, top, side, left, y, side);
    labels += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", x,
                          top + side + 17, tick);
    labels += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n", left - 7,
                          y + 4, tick);
  }
  return fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-opacity=\".25\"/>\n", lines, ink) +
         labels;
}

/// From y = x (1 - band) to x (1 + band), cut at the frame, and the diagonal.
std::string band_shape(const Scale& scale, double band) {
  const double lower = std::log(1 - band), upper = std::log(1 + band);
  const double unit = side / std::log(scale.high() / scale.low());
  const double down = -lower * unit, up = upper * unit;  // shifts of the diagonal
  const double right = left + side, bottom = top + side;
  return fmt::format(
      "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}H{:.1f}V{:.1f}L{:.1f} {:.1f}H{:.1f}Z\" fill=\"{}\" "
      "fill-opacity=\".22\" stroke=\"none\"/>\n<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" "
      "stroke=\"{}\" stroke-dasharray=\"5 4\"/>\n",
      left, bottom - up, right - up, top, right, top + down, left + down, bottom, left, ink, left,
      bottom, right, top, ink);
}

std::string legend(const std::vector<Group>& groups, double band) {
  std::string out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    const double y = top + line_height * (static_cast<double>(i) + 0.5);
    const double share =
        static_cast<double>(group.inside) / static_cast<double>(group.points.size());
    const Mark mark = mark_of(i);
    out += marks(mark_path(legend_left, y, mark), i);
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{}: {}, {:.0f} %</text>\n", legend_left + 9,
                       y + 4, svg_escaped(group.source), group.points.size(), 100 * share);
  }
  return out + fmt::format("<text x=\"{}\" y=\"{}\">points, within {:g} %</text>\n", legend_left,
                           top - 6, 100 * band);
}

std::string headings(const FigureText& text) {
  const double middle = left + side / 2, centre = top + side / 2;
  return fmt::format(
      "<text x=\"{}\" y=\"22\" font-size=\"16\">{}</text>\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
      "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      left, svg_escaped(text.title), middle, top + side + 42, svg_escaped(text.x_axis), centre,
      svg_escaped(text.y_axis));
}

}  // namespace

std::string scatter_svg(const std::vector<FigurePoint>& points, const FigureText& text,
                        double band) {
  expects(band > 0 && band < 1, "a band between 0 and 1");
  for (const FigurePoint& p : points)
    expects(std::isfinite(p.x) && std::isfinite(p.y) && p.x > 0 && p.y > 0, "positive points");
  const Scale scale(points);
  const std::vector<Group> groups = groups_of(points, band);
  const double legend_bottom = top + line_height * static_cast<double>(groups.size() + 1);
  std::string out = sim::svg_head(width, std::max(height, legend_bottom), text.title) +
                    fmt::format("<g fill=\"{}\">\n", ink);
  out += headings(text) + grid(scale) + "</g>\n<g fill=\"none\">\n" + band_shape(scale, band);
  out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" stroke=\"{}\"/>\n", left,
                     top, side, side, ink);
  out += "</g>\n<g fill=\"none\" stroke-linecap=\"round\" stroke-opacity=\".75\">\n";
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Mark mark = mark_of(i);
    std::string path;
    for (const FigurePoint* p : groups[i].points)
      path += mark_path(scale.x(p->x), scale.y(p->y), mark);
    out += marks(path, i);
  }
  return out + "</g>\n<g stroke-linecap=\"round\" fill=\"" + std::string(ink) + "\">\n" +
         legend(groups, band) + "</g>\n</svg>\n";
}

}  // namespace stepcast::validate
