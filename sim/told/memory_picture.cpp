#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/units_text.hpp"
#include "sim/files/svg.hpp"
#include "sim/pictures/bar_picture.hpp"
#include "sim/pictures/picture_text.hpp"
#include "sim/told/memory_timeline.hpp"

namespace stepcast::sim {
namespace {

// In user units of the picture: a panel a stage, the legend beside the first.
constexpr double panel_left = 70, panels_top = 48, panel = 130, gap = 26, side = 620;
constexpr double legend_left = panel_left + side + 18, width = legend_left + 150, line_height = 16;
constexpr const char* looks = "memory";   // patterns as well as colours
constexpr std::size_t num_columns = 620;  // that are told apart

/// Of all samples in a column of the picture the fullest.
std::vector<const MemorySample*> columns_of(const StageMemory& stage) {
  std::vector<const MemorySample*> out;
  const std::size_t n = stage.samples.size(), num = std::min(num_columns, n);
  for (std::size_t c = 0; c < num; ++c) {
    const auto from = stage.samples.begin() + static_cast<std::ptrdiff_t>(c * n / num);
    const auto to = stage.samples.begin() + static_cast<std::ptrdiff_t>((c + 1) * n / num);
    out.push_back(&*std::max_element(from, to, [](const MemorySample& a, const MemorySample& b) {
      return a.allocated < b.allocated;
    }));
  }
  return out;
}

/// A panel: where its bottom is and what its height stands for.
struct Frame {
  double bottom = 0, most = 1;
  double y(std::int64_t bytes) const { return bottom - panel * static_cast<double>(bytes) / most; }
};

double x_of(std::size_t column, std::size_t num) {
  return panel_left + side * static_cast<double>(column) / static_cast<double>(num);
}

/// The steps of a curve from its left end to its right one, or back: a corner where it changes.
std::string edge(const std::vector<std::int64_t>& bytes, const Frame& frame, bool to_the_right) {
  const std::size_t n = bytes.size();
  std::string out;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t c = to_the_right ? i : n - 1 - i;
    const std::size_t before = to_the_right ? c - 1 : c + 1;
    if (i > 0 && bytes[c] == bytes[before]) continue;
    const double x = x_of(to_the_right ? c : c + 1, n);
    out += i == 0 ? fmt::format("{}{:.0f} {:.1f}", to_the_right ? "M" : "L", x, frame.y(bytes[c]))
                  : fmt::format("H{:.0f}V{:.1f}", x, frame.y(bytes[c]));
  }
  return out + fmt::format("H{:.0f}", x_of(to_the_right ? n : 0, n));
}

/// Kinds lie on top of each other, states lowest, so that what comes and goes is seen.
std::string areas(const std::vector<const MemorySample*>& samples, const Frame& frame) {
  std::string out;
  std::vector<std::int64_t> below(samples.size());
  for (std::size_t kind = 0; kind < workloads::tensor_kind_names.size(); ++kind) {
    std::vector<std::int64_t> above = below;
    for (std::size_t c = 0; c < samples.size(); ++c) above[c] += samples[c]->of_kind[kind];
    if (above != below)
      out += fmt::format("<path d=\"{}{}Z\" fill=\"{}\"/>\n", edge(above, frame, true),
                         edge(below, frame, false), look_fill(looks, kind));
    below = std::move(above);
  }
  return out;
}

std::string line_at(double y, const std::string& text) {
  return fmt::format(
      "<path d=\"M{} {:.1f}h{}\" stroke=\"{}\" stroke-dasharray=\"5 4\" fill=\"none\"/>\n"
      "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
      panel_left, y, side, svg_ink, panel_left - 7, y + 4, svg_escaped(text));
}

/// Of the panel in GiB, but for those whose words would meet the reserved memory's.
std::string ticks(const Frame& frame, double reserved_y) {
  constexpr double gib = 1 << 30, apart = 14;
  std::string out;
  for (const double tick : round_ticks(0, frame.most / gib, 5)) {
    const double y = frame.y(static_cast<std::int64_t>(tick * gib));
    if (std::abs(y - reserved_y) < apart) continue;
    out += fmt::format(
        "<path d=\"M{} {:.1f}h-5\" stroke=\"{}\" fill=\"none\"/>\n"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g} GiB</text>\n",
        panel_left, y, svg_ink, panel_left - 7, y + 4, tick);
  }
  return out;
}

std::string legend() {
  std::string out;
  for (std::size_t kind = 0; kind < workloads::tensor_kind_names.size(); ++kind) {
    const double y = panels_top + line_height * (static_cast<double>(kind) + 0.5);
    out += fmt::format(
        "<rect x=\"{}\" y=\"{:.1f}\" width=\"14\" height=\"12\" fill=\"{}\"/>\n"
        "<text x=\"{}\" y=\"{:.1f}\">{}</text>\n",
        legend_left, y - 6, look_fill(looks, kind), legend_left + 20, y + 4,
        workloads::tensor_kind_names[kind]);
  }
  return out;
}

}  // namespace

std::string memory_svg(const std::vector<StageMemory>& stages, const std::string& title,
                       Bytes memory) {
  std::int64_t most = 0;
  for (const StageMemory& stage : stages)
    for (const MemorySample& sample : stage.samples) most = std::max(most, sample.reserved);
  const double height = panels_top + static_cast<double>(stages.size()) * (panel + gap) + 20;
  std::string out = svg_head(width, height, title) + fmt::format("<g fill=\"{}\">\n", svg_ink) +
                    fmt::format("<text x=\"{}\" y=\"22\" font-size=\"16\">{}</text>\n", panel_left,
                                svg_escaped(title)) +
                    look_definitions(looks, workloads::tensor_kind_names.size()) + legend();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Frame frame{panels_top + panel + static_cast<double>(i) * (panel + gap),
                      1.05 * static_cast<double>(std::max<std::int64_t>(most, 1))};
    const auto samples = columns_of(stages[i]);
    out += areas(samples, frame);
    out += ticks(frame, samples.empty() ? 0 : frame.y(samples.back()->reserved));
    if (!samples.empty())
      out += line_at(frame.y(samples.back()->reserved), to_text(Bytes(samples.back()->reserved)));
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\">stage {}</text>\n", panel_left + 4,
                       frame.bottom - panel - 4, stages[i].stage);
  }
  return out + fmt::format(
                   "<text x=\"{}\" y=\"{:.1f}\">allocations of the second step in their "
                   "order; dashed: reserved, of {}</text>\n</g>\n</svg>\n",
                   panel_left, height - 8, to_text(memory));
}

}  // namespace stepcast::sim
