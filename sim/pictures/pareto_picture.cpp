#include "sim/pictures/pareto_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/check.hpp"
#include "sim/files/svg.hpp"
#include "sim/pictures/picture_text.hpp"

namespace stepcast::sim {
namespace {

// In user units of the picture, which a page scales as it likes.
constexpr double plot_left = 70, plot_top = 62, plot_width = 600, plot_height = 380;
constexpr double plot_right = plot_left + plot_width, plot_bottom = plot_top + plot_height;
constexpr double picture_width = plot_right + 30, legend_top = plot_bottom + 66, legend_pitch = 18;
constexpr double mark_size = 5;

bool has_up_limit(const ParetoPicture& picture) {
  return picture.up.limit > 0 && !picture.points.empty();
}

/// Across from nothing to a little above limit and points, upwards from a little below to above.
class Axes {
 public:
  explicit Axes(const ParetoPicture& picture) : most_across_(picture.across.limit) {
    constexpr double margin = 1.08;
    const std::vector<ParetoPoint>& points = picture.points;
    if (!points.empty()) least_up_ = most_up_ = points.front().up;
    for (const ParetoPoint& p : points) {
      least_up_ = std::min(least_up_, p.up);
      most_up_ = std::max(most_up_, p.up);
      most_across_ = std::max(most_across_, p.across);
    }
    if (picture.up.limit > 0 && !points.empty()) {
      least_up_ = std::min(least_up_, picture.up.limit);
      most_up_ = std::max(most_up_, picture.up.limit);
    }
    if (most_across_ == 0) most_across_ = 1;
    least_up_ /= margin;
    most_up_ *= margin;
    most_across_ *= margin;
  }

  double x(double across) const { return plot_left + plot_width * across / most_across_; }
  double y(double up) const {
    return plot_bottom - plot_height * std::log(up / least_up_) / std::log(most_up_ / least_up_);
  }
  std::vector<double> across_ticks() const { return round_ticks(0, most_across_, 9); }

  /// Even steps while they lie well apart, else 1, 2 and 5 of every decade.
  std::vector<double> up_ticks() const {
    return most_up_ / least_up_ < 10 ? round_ticks(least_up_, most_up_, 9)
                                     : decade_ticks(least_up_, most_up_);
  }

 private:
  double least_up_ = 1, most_up_ = 10, most_across_ = 1;
};

std::string pareto_grid(const Axes& axes) {
  std::string lines, out;
  for (const double tick : axes.across_ticks()) {
    lines += fmt::format("M{:.1f} {}v{}", axes.x(tick), plot_top, plot_height);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n",
                       axes.x(tick), plot_bottom + 17, tick);
  }
  for (const double tick : axes.up_ticks()) {
    lines += fmt::format("M{} {:.1f}h{}", plot_left, axes.y(tick), plot_width);
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
                       plot_left - 7, axes.y(tick) + 4, tick);
  }
  return fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-opacity=\".25\" fill=\"none\"/>\n", lines,
                     svg_ink) +
         out;
}

std::string pareto_headings(const ParetoPicture& picture) {
  return fmt::format(
      "<text x=\"{}\" y=\"22\" font-size=\"16\">{}</text>\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
      "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      plot_left, svg_escaped(cut_text(picture.title, plot_width * 12 / 16)),
      plot_left + plot_width / 2, plot_bottom + 40, svg_escaped(picture.across.title),
      plot_top + plot_height / 2, svg_escaped(picture.up.title));
}

/// Of the words of the limit upwards: on its line, or below where that is close to the upper edge.
TextBox up_limit_box(const ParetoPicture& picture, const Axes& axes) {
  constexpr double height = 14;
  const double y = axes.y(picture.up.limit);
  return {plot_left + 6, y < plot_top + 20 ? y + 4 : y - height - 2,
          text_width(picture.up.limit_text), height};
}

/// The words of the limit across stand above the frame, where no mark is.
std::string limit_lines(const ParetoPicture& picture, const Axes& axes) {
  std::string out;
  const auto line = [&](const std::string& path) {
    out += fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-dasharray=\"6 4\" fill=\"none\"/>\n",
                       path, svg_ink);
  };
  const auto word = [&](double x, double y, const char* anchor, const std::string& text) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                       anchor, svg_escaped(text));
  };
  if (picture.across.limit > 0) {
    const double x = axes.x(picture.across.limit);
    line(fmt::format("M{:.1f} {}v{}", x, plot_top, plot_height));
    word(x, plot_top - 8, x > plot_left + plot_width / 2 ? "end" : "start",
         picture.across.limit_text);
  }
  if (has_up_limit(picture)) {
    const TextBox box = up_limit_box(picture, axes);
    line(fmt::format("M{} {:.1f}h{}", plot_left, axes.y(picture.up.limit), plot_width));
    word(box.left, box.top + box.height - 3, "start", picture.up.limit_text);
  }
  return out;
}

/// Where the front turns.
std::vector<std::pair<double, double>> front_corners(const std::vector<ParetoPoint>& points,
                                                     const Axes& axes) {
  std::vector<const ParetoPoint*> front;
  for (const ParetoPoint& p : points)
    if (p.on_front) front.push_back(&p);
  std::ranges::sort(front, {}, [](const ParetoPoint* p) { return p->across; });
  std::vector<std::pair<double, double>> out;
  for (const ParetoPoint* p : front) out.emplace_back(axes.x(p->across), axes.y(p->up));
  return out;
}

/// With so much across the best is this: across to the next point of the front, then down to it.
std::string front_line(const std::vector<ParetoPoint>& points, const Axes& axes) {
  std::string path;
  for (const auto& [x, y] : front_corners(points, axes))
    path +=
        path.empty() ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format("H{:.1f}V{:.1f}", x, y);
  if (path.empty()) return path;
  return fmt::format(
      "<path class=\"front\" d=\"{}\" stroke=\"{}\" stroke-width=\"1.8\" fill=\"none\"/>\n", path,
      svg_colours[0]);
}

/// Told apart by shape, for a page without colours.
enum class Shape : std::uint8_t { point, front, diamond, square, triangle };
struct Look {
  std::string_view colour, fill;
};
constexpr std::array<Look, 5> looks = {{{svg_ink, "none"},
                                        {svg_colours[0], svg_colours[0]},
                                        {svg_colours[1], svg_colours[1]},
                                        {svg_colours[2], "none"},
                                        {svg_colours[3], "none"}}};

Shape shape_of(ParetoSign sign) {
  return static_cast<Shape>(static_cast<int>(Shape::diamond) + static_cast<int>(sign));
}

std::string mark(double x, double y, Shape shape, const std::string& kind,
                 const std::string& tooltip) {
  const Look& look = looks[static_cast<std::size_t>(shape)];
  std::string path;
  switch (shape) {
    case Shape::point:
    case Shape::front: {
      const double r = shape == Shape::point ? 3 : 3.5;
      path = fmt::format("M{0:.1f} {1:.1f}a{2} {2} 0 1 0 {3} 0a{2} {2} 0 1 0 -{3} 0Z", x - r, y, r,
                         2 * r);
      break;
    }
    case Shape::diamond: {
      const double size = 1.6 * mark_size;
      path = fmt::format("M{0:.1f} {1:.1f}l{2} {2}l{2} -{2}l-{2} -{2}Z", x - size, y, size);
      break;
    }
    case Shape::square: {  // round the point
      const double size = 1.4 * mark_size;
      path = fmt::format("M{0:.1f} {1:.1f}h{2}v{2}h-{2}Z", x - size, y - size, 2 * size);
      break;
    }
    case Shape::triangle: {  // round the point and the square
      const double size = 2.4 * mark_size;
      path = fmt::format("M{:.1f} {:.1f}l{} {}h-{}Z", x, y - 1.4 * size, 1.2 * size, 2.1 * size,
                         2.4 * size);
      break;
    }
  }
  return fmt::format(
      "<path class=\"{}\" d=\"{}\" stroke=\"{}\" stroke-width=\"1.5\" "
      "fill=\"{}\"><title>{}</title></path>\n",
      svg_escaped(kind), path, look.colour, look.fill, svg_escaped(tooltip));
}

std::string word_of(const ParetoPicture& picture, ParetoSign sign) {
  return picture.sign_words[static_cast<std::size_t>(sign)];
}

bool has(const ParetoPoint& point, ParetoSign sign) {
  return std::ranges::count(point.signs, sign) > 0;
}

constexpr ParetoSign all_signs[] = {ParetoSign::diamond, ParetoSign::square, ParetoSign::triangle};

/// The signed points come last, so that no other mark covers them.
std::string point_marks(const ParetoPicture& picture, const Axes& axes) {
  std::string out;
  const auto draw = [&](const ParetoPoint& p, Shape shape, const std::string& kind) {
    out += mark(axes.x(p.across), axes.y(p.up), shape, kind, p.label);
  };
  for (const ParetoPoint& p : picture.points)
    if (!p.on_front) draw(p, Shape::point, "point");
  for (const ParetoPoint& p : picture.points)
    if (p.on_front) draw(p, Shape::front, "front");
  for (const ParetoSign sign : all_signs)
    for (const ParetoPoint& p : picture.points)
      if (has(p, sign)) draw(p, shape_of(sign), word_of(picture, sign));
  return out;
}

/// The words of signs beside their points: where neither mark nor line is, else where no word is.
class Words {
 public:
  Words(const ParetoPicture& picture, const Axes& axes) : axes_(axes) {
    if (has_up_limit(picture)) words_.push_back(up_limit_box(picture, axes));
    for (const ParetoPoint& p : picture.points)
      marks_.push_back(
          {axes.x(p.across) - mark_size, axes.y(p.up) - mark_size, 2 * mark_size, 2 * mark_size});
    if (picture.across.limit > 0)
      marks_.push_back({axes.x(picture.across.limit) - 1, plot_top, 2, plot_height});
    const auto corners = front_corners(picture.points, axes);
    for (std::size_t i = 1; i < corners.size(); ++i) {
      const auto& [from_x, from_y] = corners[i - 1];
      const auto& [to_x, to_y] = corners[i];
      marks_.push_back({from_x, from_y - 1, to_x - from_x, 2});
      marks_.push_back({to_x - 1, from_y, 2, to_y - from_y});
    }
  }

  std::string place(const std::string& word, const ParetoPoint& point) {
    const std::array<TextBox, 4> places = beside(word, point);
    for (const bool on_marks : {false, true})
      for (const TextBox& box : places)
        if (inside(box) && free(box, words_) && (on_marks || free(box, marks_))) {
          words_.push_back(box);
          return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", box.left,
                             box.top + box.height - 3, svg_escaped(word));
        }
    return "";  // the legend says it
  }

 private:
  std::array<TextBox, 4> beside(const std::string& word, const ParetoPoint& point) const {
    const double height = 14, away = has(point, ParetoSign::triangle) ? 18 : 11;
    const double x = axes_.x(point.across), y = axes_.y(point.up), width = text_width(word);
    return {{{x + away, y - height / 2, width, height},
             {x - away - width, y - height / 2, width, height},
             {x - width / 2, y - away - height, width, height},
             {x - width / 2, y + away, width, height}}};
  }
  static bool inside(const TextBox& box) {
    return box.left > plot_left && box.left + box.width < plot_right && box.top > plot_top &&
           box.top + box.height < plot_bottom;
  }
  static bool free(const TextBox& box, const std::vector<TextBox>& others) {
    return std::ranges::none_of(others, [&](const TextBox& o) { return box.overlaps(o); });
  }

  const Axes& axes_;
  std::vector<TextBox> marks_, words_;
};

std::string signed_words(const ParetoPicture& picture, const Axes& axes) {
  Words placed(picture, axes);
  std::string out;
  for (const ParetoSign first : all_signs)
    for (const ParetoPoint& p : picture.points) {
      if (p.signs.empty() || p.signs.front() != first) continue;
      std::string words;
      for (const ParetoSign sign : p.signs)
        words += (words.empty() ? "" : ", ") + word_of(picture, sign);
      out += placed.place(words, p);
    }
  return out;
}

struct LegendRow {
  Shape shape;
  std::string kind, text;
};

std::vector<LegendRow> legend_rows(const ParetoPicture& picture) {
  std::vector<LegendRow> out;
  for (const ParetoSign sign : all_signs)
    for (const ParetoPoint& p : picture.points)
      if (has(p, sign))
        out.push_back(
            {shape_of(sign), word_of(picture, sign), word_of(picture, sign) + ", " + p.label});
  const auto any = [&](bool on_front) {
    return std::ranges::any_of(picture.points,
                               [&](const ParetoPoint& p) { return p.on_front == on_front; });
  };
  if (any(true)) out.push_back({Shape::front, "front", picture.front_meaning});
  if (any(false)) out.push_back({Shape::point, "point", picture.point_meaning});
  return out;
}

/// `bottom` is set to where it ends.
std::string legend_of(const std::vector<LegendRow>& rows, double& bottom) {
  constexpr double text_left = 28, line_height = 15;
  constexpr std::size_t most_lines = 3;
  std::string out;
  double y = legend_top;
  for (const auto& [shape, kind, text] : rows) {
    if (shape == Shape::triangle) y += 6;
    out += mark(plot_left + 8, y, shape, kind, text);
    double below = y + 4;
    for (const std::string& line : wrapped_text(text, plot_width - text_left, most_lines)) {
      out += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{}</text>\n", plot_left + text_left, below,
                         svg_escaped(line));
      below += line_height;
    }
    y = std::max(y + (shape == Shape::triangle ? 1.2 : 1) * legend_pitch,
                 below - line_height + legend_pitch - 4);
  }
  bottom = y;
  return out;
}

}  // namespace

void mark_front(std::vector<ParetoPoint>& points) {
  for (ParetoPoint& point : points)
    point.on_front = std::ranges::none_of(points, [&](const ParetoPoint& other) {
      return other.across <= point.across && other.up <= point.up &&
             (other.across < point.across || other.up < point.up);
    });
}

std::string pareto_picture(const ParetoPicture& picture) {
  for (const ParetoPoint& p : picture.points)
    expects(std::isfinite(p.up) && p.up > 0 && std::isfinite(p.across) && p.across >= 0,
            "points that take something");
  const Axes axes(picture);
  double height = 0;
  const std::string legend = legend_of(legend_rows(picture), height);
  return svg_head(picture_width, height, picture.title) +
         fmt::format("<g fill=\"{}\">\n", svg_ink) + pareto_headings(picture) + pareto_grid(axes) +
         limit_lines(picture, axes) + front_line(picture.points, axes) +
         point_marks(picture, axes) + signed_words(picture, axes) + legend + "</g>\n</svg>\n";
}

}  // namespace stepcast::sim
