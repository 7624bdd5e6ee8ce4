#include "validate/compare/page.hpp"

#include <fmt/format.h>

#include "engine/units_text.hpp"
#include "validate/compare/figure.hpp"
#include "validate/compare/report.hpp"

namespace stepcast::validate {

sim::Chart scatter_chart(const std::string& title, const std::string& svg, sim::TextTable rows) {
  return {"predicted_measured", title, svg, std::move(rows),
          "Equal logarithmic axes, the diagonal, a band of 10 % around it; a mark per source."};
}

sim::Page comparison_page(const Comparison& c, const sim::Origin& origin) {
  std::vector<FigurePoint> points;
  sim::TextTable rows;
  for (const char* heading : {"GPU", "what", "source"})
    rows.column(heading, "", sim::TextTable::Align::left);
  for (const char* heading : {"measured", "predicted", "error"}) rows.column(heading);
  for (const ComparedRow& row : c.rows) {
    if (!row.scored() || !row.predicted || row.measured.count() <= 0) continue;
    points.push_back({seconds(row.measured) * 1e6, seconds(*row.predicted) * 1e6,
                      row.source.empty() ? row.gpu : row.source});
    rows.row({row.gpu, row.what, row.source, to_text(row.measured), to_text(*row.predicted),
              fmt::format("{:+.1f} %", 100 * row.error())});
  }
  const Summary summary = summary_of(c);
  sim::Page out{c.title, "Measured beside predicted: " + c.file + ".", {}};
  sim::PageSection glance{"At a glance", {}};
  if (summary.all)
    glance.blocks.emplace_back(sim::KeyFigures{
        {"median error", sim::percent(summary.all->median_ape), "of the absolute errors"},
        {"mean error", sim::percent(summary.all->mape), "of the absolute errors"},
        {"bias", sim::percent(summary.all->bias), "mean; positive: predicted too long"},
        {"rows", sim::grouped(static_cast<std::int64_t>(summary.all->rows)), "that are scored"}});
  for (const std::string& note : c.notes) glance.blocks.emplace_back(sim::Paragraph{note});
  if (!points.empty())
    glance.blocks.emplace_back(scatter_chart(
        c.title, scatter_svg(points, {c.title, "measured time [us]", "predicted time [us]"}, 0.1),
        std::move(rows)));
  out.sections.push_back(std::move(glance));
  out.sections.push_back({"All tables", {sim::Listing{"As text", report_text(c), false}}});
  out.sections.push_back(sim::origin_section(origin, nullptr));
  return out;
}

}  // namespace stepcast::validate
