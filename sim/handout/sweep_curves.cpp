#include "sim/handout/sweep_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "engine/units_text.hpp"
#include "sim/pictures/curve_picture.hpp"
#include "sim/told/text.hpp"

namespace stepcast::sim {
namespace {

struct Place {
  double at;
  std::string unit, text;  // of "500 W"
};

/// None where the value is no number with or without a unit.
std::optional<Place> place_of(const TomlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.data))
    return Place{static_cast<double>(*integer), "", swept_cell(value)};
  if (const auto* number = std::get_if<double>(&value.data))
    return Place{*number, "", swept_cell(value)};
  const std::string* text = value.text();
  if (text == nullptr) return std::nullopt;
  Place out{0, "", *text};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out.at);
  if (error != std::errc{}) return std::nullopt;
  out.unit.assign(end, text->data() + text->size());
  out.unit.erase(0, out.unit.find_first_not_of(' '));
  const bool is_version =
      !out.unit.empty() && std::ispunct(static_cast<unsigned char>(out.unit[0]));
  return is_version ? std::nullopt : std::optional(out);
}

/// The points that have a row, by rising place; empty where the places are no axis.
std::vector<std::pair<Place, std::size_t>> places_of(const Results& results) {
  const Study& study = results.study;
  std::vector<std::pair<Place, std::size_t>> out;
  if (study.keys.size() != 1) return out;
  for (std::size_t point = 0; point < results.rows.size(); ++point) {
    if (!results.rows.has(point)) continue;
    const SweepPoint settings = study.point(point);
    const TomlValue* value = setting_of(settings, study.keys.front());
    const auto place = value == nullptr ? std::nullopt : place_of(*value);
    if (!place || !std::isfinite(place->at)) return {};
    out.emplace_back(*place, point);
    if (out.back().first.unit != out.front().first.unit) return {};
  }
  const auto at = [](const std::pair<Place, std::size_t>& p) { return p.first.at; };
  std::ranges::sort(out, {}, at);
  if (std::ranges::adjacent_find(out, {}, at) != out.end()) return {};
  return out;
}

struct SweptRow {
  Place place;
  PointRow row;
};

std::vector<SweptRow> swept_rows(const Results& results) {
  std::vector<SweptRow> out;
  for (const auto& [place, point] : places_of(results))
    out.push_back({place, results.rows.row(point)});
  return out;
}

/// One of the figures that may be drawn.
struct CurveFigure {
  const char *title, *key, *low, *high, *unit;
  bool most;  // is best
};
constexpr CurveFigure curve_figures[] = {
    {"step", "step_time_s", "step_time_low_s", "step_time_high_s", "s", false},
    {"throughput per GPU", "tokens_per_s_per_gpu", "", "", "tokens/s", true},
    {"power per GPU", "power_w_per_gpu", "", "", "W", false},
    {"tokens per joule of the GPUs", "tokens_per_joule", "", "", "tokens/J", true},
};

CurvePanel panel_of(const CurveFigure& figure, const std::vector<SweptRow>& rows) {
  CurvePanel out;
  for (const auto& [place, row] : rows) {
    CurveMark point{place.at, row.number(figure.key), {}, ""};
    if (point.value) {
      point.band = {row.number(figure.low).value_or(*point.value),
                    row.number(figure.high).value_or(*point.value)};
      point.label = fmt::format("{}: {} {}", place.text, three_digits(*point.value), figure.unit);
      const auto better = [&](double than) {
        return figure.most ? *point.value > than : *point.value < than;
      };
      if (!out.best || better(*out.points[*out.best].value)) out.best = out.points.size();
    }
    out.points.push_back(std::move(point));
  }
  out.title = fmt::format("{}, {}", figure.title, figure.unit);
  if (out.best)
    out.title +=
        fmt::format("; {} at {}", figure.most ? "most" : "least", out.points[*out.best].label);
  return out;
}

/// Whether its curve says more than that nothing changes.
bool changes(const CurvePanel& panel) {
  constexpr double nothing = 1e-9;  // of the value
  const CurveMark* first = nullptr;
  for (const CurveMark& p : panel.points) {
    if (!p.value) continue;
    if (first == nullptr) first = &p;
    if (std::abs(*p.value - *first->value) > nothing * std::abs(*first->value)) return true;
  }
  return false;
}

}  // namespace

std::optional<Chart> curves_of(const Results& results) {
  const std::vector<SweptRow> rows = swept_rows(results);
  const auto answered = std::ranges::count_if(
      rows, [](const SweptRow& r) { return r.row.number("step_time_s").has_value(); });
  if (answered < 3) return std::nullopt;
  const std::string key = swept_heading(results.study.keys.front());
  const std::string& unit = rows.front().place.unit;
  CurvePicture picture{"Over " + key, unit.empty() ? key : key + ", " + unit, {}};
  TextTable table;
  table.column(key);
  std::vector<TableCells> cells;
  for (const SweptRow& row : rows) cells.push_back({row.place.text});
  for (const CurveFigure& figure : curve_figures) {
    CurvePanel panel = panel_of(figure, rows);
    if (!changes(panel)) continue;
    table.column(figure.title, figure.unit);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& value = panel.points[i].value;
      cells[i].push_back(value ? TableCell(three_digits(*value), *value) : TableCell("-"));
    }
    picture.panels.push_back(std::move(panel));
  }
  if (picture.panels.empty()) return std::nullopt;
  for (TableCells& row : cells) table.row(std::move(row));
  return Chart{"over_key", picture.title, curve_picture(picture), std::move(table),
               "Each from nothing up; shaded: where the measured step may lie; a ring: the best."};
}

}  // namespace stepcast::sim
