#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "engine/units_text.hpp"
#include "sim/handout/step_handout.hpp"
#include "sim/pictures/heat_picture.hpp"
#include "sim/told/search.hpp"

namespace stepcast::sim {
namespace {

std::vector<std::int64_t> degrees_of(const SearchAnswer& a, const Knob& degree) {
  std::set<std::int64_t> out;
  for (const Found& found : a.result.found) out.insert(degree.in(found.knobs));
  return {out.begin(), out.end()};
}

/// The best step of each pair of tensor and pipeline degree; none where there is one of either.
std::optional<Chart> degrees_chart(const SearchAnswer& a) {
  const Knob &tensor_knob = *find_knob("plan.tensor"), &stages_knob = *find_knob("plan.pipeline");
  const auto tensor = degrees_of(a, tensor_knob);
  const auto pipeline = degrees_of(a, stages_knob);
  if (tensor.size() < 2 || pipeline.size() < 2) return std::nullopt;
  HeatPicture picture{"Best step by tensor and pipeline degree", "tensor", "pipeline"};
  TextTable table;
  table.column("tensor / pipeline");
  for (const std::int64_t p : pipeline) {
    picture.columns.push_back(grouped(p));
    table.column(picture.columns.back());
  }
  for (const std::int64_t t : tensor) {
    picture.rows.push_back(grouped(t));
    std::vector<std::optional<double>> values(pipeline.size());
    std::vector<std::string> texts(pipeline.size(), "-");
    for (const Found& found : a.result.found) {
      if (tensor_knob.in(found.knobs) != t) continue;
      const auto at = static_cast<std::size_t>(
          std::ranges::find(pipeline, stages_knob.in(found.knobs)) - pipeline.begin());
      const double step = seconds(found.report.step_time);
      if (values[at] && *values[at] <= step) continue;
      values[at] = step;
      texts[at] = to_text(found.report.step_time);
    }
    TableCells cells{picture.rows.back()};
    for (const std::string& text : texts) cells.push_back({text});
    table.row(std::move(cells));
    picture.values.push_back(std::move(values));
    picture.texts.push_back(std::move(texts));
  }
  return Chart{"degrees", picture.title, heat_picture(picture), std::move(table),
               "Of the plans that were simulated: the larger the square, the longer the step; the "
               "shortest is framed."};
}

}  // namespace

ToldSection search_section(const SearchAnswer& a) {
  ToldSection out{"Search of plans", {}};
  out.blocks.emplace_back(Paragraph{"Proof: " + proof_text(a) + "."});
  std::string space;
  for (const std::string& line : a.space.choices()) space += line + "\n";
  if (!space.empty()) out.blocks.emplace_back(Listing{"Space of plans", space});
  if (a.result.found.empty()) return out;
  TextTable all;
  all.column("plan", "", TextTable::Align::left);
  for (const char* heading : {"step", "memory per GPU"}) all.column(heading);
  constexpr std::size_t most_rows = 400;
  for (std::size_t i = 0; i < std::min(most_rows, a.result.found.size()); ++i) {
    const Found& found = a.result.found[i];
    all.row({plan_words(a.space, found.knobs), to_text(found.report.step_time),
             to_text(found.report.memory.total())});
  }
  if (a.result.found.size() > most_rows)
    all.sentence({}, fmt::format("{} slower plans", a.result.found.size() - most_rows));
  if (a.own && a.own->report)
    all.row(
        {"your plan", to_text(a.own->report->step_time), to_text(a.own->report->memory.total())});
  out.blocks.emplace_back(Chart{"plans", "Plans: step against memory", search_picture(a),
                                std::move(all), "Every plan that was simulated."});
  if (auto chart = degrees_chart(a)) out.blocks.emplace_back(std::move(*chart));
  out.blocks.emplace_back(ToldTable{"Best plans", plans_table(a)});
  return out;
}

}  // namespace stepcast::sim
