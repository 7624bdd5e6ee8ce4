#include "sim/pictures/heat_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/files/svg.hpp"
#include "sim/pictures/picture_text.hpp"

namespace stepcast::sim {
namespace {

// In user units of the picture.
constexpr double heat_left = 130, heat_top = 78, cell_width = 86, cell_height = 62,
                 largest_square = 36;

std::string heat_cell(const HeatPicture& p, std::size_t row, std::size_t column, double least,
                      double most) {
  const double x = heat_left + cell_width * static_cast<double>(column);
  const double y = heat_top + cell_height * static_cast<double>(row);
  const double middle = x + cell_width / 2;
  const auto& value = p.values[row][column];
  std::string out;
  if (value) {
    const double side = largest_square * std::sqrt(std::max(*value, 0.0) / (most > 0 ? most : 1));
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
        middle - side / 2, y + 22 - side / 2, side, side, svg_colours[0]);
    if (*value == least)
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"none\" "
          "stroke=\"{}\" stroke-width=\"2\"/>\n",
          x + 2, y + 1, cell_width - 4, cell_height - 3, svg_ink);
  }
  return out + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                           middle, y + cell_height - 7,
                           svg_escaped(cut_text(p.texts[row][column], cell_width)));
}

}  // namespace

std::string heat_picture(const HeatPicture& p) {
  double least = 0, most = 0;
  bool first = true;
  for (const auto& row : p.values)
    for (const auto& value : row)
      if (value) {
        least = first ? *value : std::min(least, *value);
        most = first ? *value : std::max(most, *value);
        first = false;
      }
  const double width =
      std::max(420.0, heat_left + cell_width * static_cast<double>(p.columns.size()) + 10);
  const double height = heat_top + cell_height * static_cast<double>(p.rows.size()) + 10;
  std::string out = svg_head(width, height, p.title) + fmt::format("<g fill=\"{}\">\n", svg_ink) +
                    fmt::format("<text x=\"8\" y=\"22\" font-size=\"16\">{}</text>\n",
                                svg_escaped(cut_text(p.title, width * 12 / 16)));
  out += fmt::format("<text x=\"{}\" y=\"46\">{}</text>\n<text x=\"8\" y=\"{}\">{}</text>\n",
                     heat_left, svg_escaped(p.columns_name), heat_top - 10,
                     svg_escaped(cut_text(p.rows_name, heat_left - 12)));
  for (std::size_t c = 0; c < p.columns.size(); ++c)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       heat_left + cell_width * (static_cast<double>(c) + 0.5), heat_top - 10,
                       svg_escaped(cut_text(p.columns[c], cell_width)));
  for (std::size_t r = 0; r < p.rows.size(); ++r) {
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                       heat_left - 10, heat_top + cell_height * static_cast<double>(r) + 27,
                       svg_escaped(cut_text(p.rows[r], heat_left - 14)));
    for (std::size_t c = 0; c < p.columns.size(); ++c) out += heat_cell(p, r, c, least, most);
  }
  return out + "</g>\n</svg>\n";
}

}  // namespace stepcast::sim
