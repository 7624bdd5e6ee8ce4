#include "validate/compare/page.hpp"

#include <fmt/format.h>

#include "engine/units_text.hpp"
#include "validate/compare/figure.hpp"
#include "validate/compare/report.hpp"

namespace stepcast::validate {
namespace {

constexpr double microsecond = 1e-6;

BesideRow beside_row(const MeasuredAndSimulated& one, const std::string& what,
                     const std::string& source) {
  return {what,
          source,
          seconds(one.measured),
          seconds(one.simulated),
          stepcast::to_text(one.measured),
          stepcast::to_text(one.simulated)};
}

}  // namespace

sim::Chart scatter_chart(const std::string& title, const std::string& svg, sim::TextTable rows) {
  return {"predicted_measured", title, svg, std::move(rows),
          "Equal logarithmic axes, the diagonal, a band of 10 % around it; a mark per source."};
}

sim::Told page_of(const BesidePage& page, const sim::Origin& origin) {
  sim::ToldSection glance{"At a glance", {}};
  if (!page.figures.empty()) glance.blocks.emplace_back(page.figures);
  for (const std::string& note : page.notes) glance.blocks.emplace_back(sim::Paragraph{note});
  std::vector<FigurePoint> points;
  sim::TextTable rows;
  for (const char* heading : {"what", "source"})
    rows.column(heading, "", sim::TextTable::Align::left);
  for (const char* heading : {"measured", "predicted", "error"}) rows.column(heading);
  for (const BesideRow& row : page.rows) {
    rows.row({row.what, row.source, row.measured_text, row.predicted_text,
              row.measured > 0 ? fmt::format("{:+.1f} %", 100 * (row.predicted / row.measured - 1))
                               : "-"});
    if (row.measured > 0 && row.predicted > 0)
      points.push_back({row.measured, row.predicted, row.source});
  }
  if (!points.empty())
    glance.blocks.emplace_back(scatter_chart(
        page.title,
        scatter_svg(points, {page.title, "measured " + page.quantity, "predicted " + page.quantity},
                    0.1),
        std::move(rows)));
  return {page.title,
          page.summary,
          {std::move(glance),
           {"All tables", {sim::Listing{"As text", page.text, false}}},
           sim::origin_section(origin, nullptr)}};
}

sim::Told comparison_page(const Comparison& c, const sim::Origin& origin) {
  BesidePage page{c.title, "Measured beside predicted: " + c.file + ".", "time [us]"};
  for (const ComparedRow& row : c.rows)
    if (row.scored() && row.predicted && row.measured.count() > 0)
      page.rows.push_back({row.gpu + ", " + row.what, row.source.empty() ? row.gpu : row.source,
                           seconds(row.measured) / microsecond,
                           seconds(*row.predicted) / microsecond, stepcast::to_text(row.measured),
                           stepcast::to_text(*row.predicted)});
  if (const Summary summary = summary_of(c); summary.all)
    page.figures = {
        {"median error", sim::percent(summary.all->median_ape), "of the absolute errors"},
        {"mean error", sim::percent(summary.all->mape), "of the absolute errors"},
        {"bias", sim::percent(summary.all->bias), "mean; positive: predicted too long"},
        {"rows", sim::grouped(static_cast<std::int64_t>(summary.all->rows)), "that are scored"}};
  page.notes = c.notes;
  page.text = report_text(c);
  return page_of(page, origin);
}

sim::Told runs_page(const std::string& title, const std::vector<RunComparison>& runs,
                    const std::string& text, const sim::Origin& origin) {
  BesidePage page{title, "Training runs beside their simulation.", "time [s]"};
  page.text = text;
  for (const RunComparison& run : runs)
    page.rows.push_back(beside_row(run.step, run.point.empty() ? "step" : run.point, "step"));
  if (runs.size() == 1) {
    const std::pair<const char*, const std::vector<MeasuredAndSimulated>*> all[] = {
        {"part of the step", &runs.front().parts},
        {"kernels", &runs.front().kinds},
        {"collectives", &runs.front().collectives}};
    for (const auto& [source, those] : all)
      for (const MeasuredAndSimulated& one : *those)
        page.rows.push_back(beside_row(one, one.what, source));
  }
  page.figures = {{"median error", sim::percent(median_error(runs)), "of the step, absolute"},
                  {"largest error", sim::percent(worst_error(runs)), "of the step, absolute"},
                  {"runs", sim::grouped(static_cast<std::int64_t>(runs.size())),
                   runs.empty() ? "" : "on " + runs.front().device}};
  return page_of(page, origin);
}

}  // namespace stepcast::validate
