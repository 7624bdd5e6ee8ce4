#include "sim/pictures/pareto_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/svg.hpp"
#include "sim/pictures/picture_text.hpp"

namespace stepcast::sim {
namespace {

// In user units of the picture, which a page scales as it likes.
constexpr double plot_left = 70, plot_top = 62, plot_width = 600, plot_height = 380;
constexpr double plot_right = plot_left + plot_width, plot_bottom = plot_top + plot_height;
constexpr double picture_width = plot_right + 30, legend_top = plot_bottom + 66, legend_pitch = 18;
constexpr double mark_size = 5;

std::string seconds_text(double step_s) { return to_text(to_duration(step_s)); }

std::string plan_told(const ParetoPoint& point) {
  return fmt::format("{}, {:.3g} GiB: {}", seconds_text(point.step_s), point.memory_gib,
                     point.label);
}

/// Memory from nothing to a little above card and points, time from a little below to above.
class Axes {
 public:
  Axes(const std::vector<ParetoPoint>& points, double card_gib) : most_gib_(card_gib) {
    constexpr double margin = 1.08;
    if (!points.empty()) fastest_ = slowest_ = points.front().step_s;
    for (const ParetoPoint& p : points) {
      fastest_ = std::min(fastest_, p.step_s);
      slowest_ = std::max(slowest_, p.step_s);
      most_gib_ = std::max(most_gib_, p.memory_gib);
    }
    fastest_ /= margin;
    slowest_ *= margin;
    most_gib_ *= margin;
  }

  double x(double gib) const { return plot_left + plot_width * gib / most_gib_; }
  double y(double step_s) const {
    return plot_bottom - plot_height * std::log(step_s / fastest_) / std::log(slowest_ / fastest_);
  }
  std::vector<double> gib_ticks() const { return round_ticks(0, most_gib_, 9); }

  /// Even steps while they lie well apart, else 1, 2 and 5 of every decade.
  std::vector<double> step_ticks() const {
    if (slowest_ / fastest_ < 10) return round_ticks(fastest_, slowest_, 9);
    std::vector<double> out;
    for (double decade = std::floor(std::log10(fastest_)); decade <= std::log10(slowest_); ++decade)
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double tick = digit * std::pow(10.0, decade);
        if (tick >= fastest_ && tick <= slowest_) out.push_back(tick);
      }
    return out;
  }

 private:
  double fastest_ = 1, slowest_ = 10, most_gib_ = 1;
};

std::string pareto_grid(const Axes& axes) {
  std::string lines, out;
  for (const double gib : axes.gib_ticks()) {
    lines += fmt::format("M{:.1f} {}v{}", axes.x(gib), plot_top, plot_height);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n",
                       axes.x(gib), plot_bottom + 17, gib);
  }
  for (const double step : axes.step_ticks()) {
    lines += fmt::format("M{} {:.1f}h{}", plot_left, axes.y(step), plot_width);
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
                       plot_left - 7, axes.y(step) + 4, step);
  }
  return fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-opacity=\".25\" fill=\"none\"/>\n", lines,
                     svg_ink) +
         out;
}

std::string pareto_headings(const std::string& title) {
  return fmt::format(
      "<text x=\"{}\" y=\"22\" font-size=\"16\">{}</text>\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">memory per GPU, GiB</text>\n"
      "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">step, s</text>\n",
      plot_left, svg_escaped(cut_text(title, plot_width * 12 / 16)), plot_left + plot_width / 2,
      plot_bottom + 40, plot_top + plot_height / 2);
}

/// Its words stand above the frame, where no mark is.
std::string card_line(const Axes& axes, double card_gib) {
  const double x = axes.x(card_gib);
  return fmt::format(
      "<path d=\"M{0:.1f} {1}v{2}\" stroke=\"{3}\" stroke-dasharray=\"6 4\" fill=\"none\"/>\n"
      "<text x=\"{0:.1f}\" y=\"{4}\" text-anchor=\"{5}\">GPU: {6:.3g} GiB</text>\n",
      x, plot_top, plot_height, svg_ink, plot_top - 8,
      x > plot_left + plot_width / 2 ? "end" : "start", card_gib);
}

/// With so much memory the best is this: across to the next plan of the front, then down to it.
std::string front_line(const std::vector<ParetoPoint>& points, const Axes& axes) {
  std::vector<const ParetoPoint*> front;
  for (const ParetoPoint& p : points)
    if (p.on_front) front.push_back(&p);
  std::ranges::sort(front, {}, [](const ParetoPoint* p) { return p->memory_gib; });
  std::string path;
  for (const ParetoPoint* p : front)
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", axes.x(p->memory_gib), axes.y(p->step_s))
                         : fmt::format("H{:.1f}V{:.1f}", axes.x(p->memory_gib), axes.y(p->step_s));
  if (path.empty()) return path;
  return fmt::format(
      "<path class=\"front\" d=\"{}\" stroke=\"{}\" stroke-width=\"1.8\" fill=\"none\"/>\n", path,
      svg_colours[0]);
}

/// Told apart by shape, for a page without colours.
enum class Sign : std::uint8_t { plan, front, best, own };
struct Look {
  const char* meaning;
  std::string_view colour, fill;
};
constexpr std::array<Look, 4> looks = {
    {{"plan", svg_ink, "none"},
     {"front: no plan is faster with less memory", svg_colours[0], svg_colours[0]},
     {"best", svg_colours[1], svg_colours[1]},
     {"own", svg_colours[2], "none"}}};

std::string mark(double x, double y, Sign sign, const std::string& tooltip) {
  const Look& look = looks[static_cast<std::size_t>(sign)];
  const double size = sign == Sign::best ? 1.6 * mark_size : mark_size;
  std::string path;
  switch (sign) {
    case Sign::plan:
    case Sign::front: {
      const double r = sign == Sign::plan ? 3 : 3.5;
      path = fmt::format("M{0:.1f} {1:.1f}a{2} {2} 0 1 0 {3} 0a{2} {2} 0 1 0 -{3} 0Z", x - r, y, r,
                         2 * r);
      break;
    }
    case Sign::best:  // a diamond
      path = fmt::format("M{0:.1f} {1:.1f}l{2} {2}l{2} -{2}l-{2} -{2}Z", x - size, y, size);
      break;
    case Sign::own:  // a square round the point
      path =
          fmt::format("M{0:.1f} {1:.1f}h{2}v{2}h-{2}Z", x - 1.4 * size, y - 1.4 * size, 2.8 * size);
      break;
  }
  return fmt::format(
      "<path class=\"{}\" d=\"{}\" stroke=\"{}\" stroke-width=\"1.5\" "
      "fill=\"{}\"><title>{}</title></path>\n",
      std::string_view(look.meaning).substr(0, std::string_view(look.meaning).find(':')), path,
      look.colour, look.fill, svg_escaped(tooltip));
}

/// The signed plans come last, so that no other mark covers them.
std::string plan_marks(const std::vector<ParetoPoint>& points, const Axes& axes) {
  std::string out;
  const auto draw = [&](const ParetoPoint& p, Sign sign) {
    out += mark(axes.x(p.memory_gib), axes.y(p.step_s), sign, plan_told(p));
  };
  for (const ParetoPoint& p : points)
    if (!p.on_front) draw(p, Sign::plan);
  for (const ParetoPoint& p : points)
    if (p.on_front) draw(p, Sign::front);
  for (const ParetoPoint& p : points)
    if (p.best) draw(p, Sign::best);
  for (const ParetoPoint& p : points)
    if (p.own) draw(p, Sign::own);
  return out;
}

/// "best" and "own" beside their points: where no mark is, else where no word is.
class Words {
 public:
  Words(const std::vector<ParetoPoint>& points, const Axes& axes) : axes_(axes) {
    for (const ParetoPoint& p : points)
      marks_.push_back({axes.x(p.memory_gib) - mark_size, axes.y(p.step_s) - mark_size,
                        2 * mark_size, 2 * mark_size});
  }

  std::string place(const std::string& word, const ParetoPoint& point) {
    const std::array<TextBox, 4> places = beside(word, point);
    for (const bool on_marks : {false, true})
      for (const TextBox& box : places)
        if (inside(box) && free(box, words_) && (on_marks || free(box, marks_))) {
          words_.push_back(box);
          return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", box.left,
                             box.top + box.height - 3, word);
        }
    return "";  // the legend says it
  }

 private:
  std::array<TextBox, 4> beside(const std::string& word, const ParetoPoint& point) const {
    constexpr double height = 14, away = 11;
    const double x = axes_.x(point.memory_gib), y = axes_.y(point.step_s), width = text_width(word);
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

std::string signed_words(const std::vector<ParetoPoint>& points, const Axes& axes) {
  Words placed(points, axes);
  std::string out;
  for (const ParetoPoint& p : points)
    if (p.best) out += placed.place(p.own ? "best, own" : "best", p);
  for (const ParetoPoint& p : points)
    if (p.own && !p.best) out += placed.place("own", p);
  return out;
}

struct LegendRow {
  Sign sign;
  std::string text;
};

std::vector<LegendRow> legend_rows(const std::vector<ParetoPoint>& points) {
  std::vector<LegendRow> out;
  for (const ParetoPoint& p : points)
    if (p.best) out.push_back({Sign::best, "best, " + plan_told(p)});
  for (const ParetoPoint& p : points)
    if (p.own) out.push_back({Sign::own, "own, " + plan_told(p)});
  for (const Sign sign : {Sign::front, Sign::plan})
    if (std::ranges::any_of(
            points, [&](const ParetoPoint& p) { return p.on_front == (sign == Sign::front); }))
      out.push_back({sign, looks[static_cast<std::size_t>(sign)].meaning});
  return out;
}

std::string legend_of(const std::vector<LegendRow>& rows) {
  std::string out;
  double y = legend_top;
  for (const auto& [sign, text] : rows) {
    out += mark(plot_left + 8, y, sign, text);
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{}</text>\n", plot_left + 24, y + 4,
                       svg_escaped(cut_text(text, plot_width - 24)));
    y += legend_pitch;
  }
  return out;
}

}  // namespace

std::string pareto_picture(const std::vector<ParetoPoint>& points, double card_gib,
                           const std::string& title) {
  expects(card_gib > 0, "a GPU with memory");
  for (const ParetoPoint& p : points)
    expects(
        std::isfinite(p.step_s) && p.step_s > 0 && std::isfinite(p.memory_gib) && p.memory_gib >= 0,
        "plans that take time and memory");
  const Axes axes(points, card_gib);
  const std::vector<LegendRow> rows = legend_rows(points);
  const double height = legend_top + legend_pitch * static_cast<double>(rows.size());
  return svg_head(picture_width, height, title) + fmt::format("<g fill=\"{}\">\n", svg_ink) +
         pareto_headings(title) + pareto_grid(axes) + card_line(axes, card_gib) +
         front_line(points, axes) + plan_marks(points, axes) + signed_words(points, axes) +
         legend_of(rows) + "</g>\n</svg>\n";
}

}  // namespace stepcast::sim
