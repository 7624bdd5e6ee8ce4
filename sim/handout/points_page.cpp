#include "sim/handout/points_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/handout/stage_times.hpp"
#include "sim/handout/sweep_curves.hpp"
#include "sim/pictures/bar_picture.hpp"
#include "sim/pictures/heat_picture.hpp"
#include "sim/scenario/file.hpp"
#include "sim/told/goal_text.hpp"
#include "sim/told/metrics.hpp"
#include "sim/told/text.hpp"

namespace stepcast::sim {
namespace {

struct RowPart {
  const char *name, *key;
};
constexpr RowPart row_parts[] = {{"compute", "compute_s"},
                                 {"exposed communication", "exposed_communication_s.total"},
                                 {"bubble", "bubble_s"},
                                 {"wait", "wait_s"},
                                 {"host", "host_s"}};
constexpr std::size_t most_bars = 40;

TableCell seconds_cell(std::optional<double> time_s) {
  return time_s ? TableCell(to_text(to_duration(*time_s)), *time_s) : TableCell("-");
}

Chart parts_of_rows(const std::vector<NamedRow>& rows) {
  BarPicture picture{"step_parts", "Where the steps go", "s", {}};
  TextTable table;
  table.column("", "", TextTable::Align::left, "point");
  for (const RowPart& part : row_parts) {
    picture.series.emplace_back(part.name);
    table.column(part.name);
  }
  table.column("step");
  for (const auto& [name, at] : rows) {
    const PointRow& row = *at;
    if (const auto reason = row.unanswered()) {
      table.sentence({name}, *reason);
      continue;
    }
    BarRow bar{name, {}};
    TableCells cells{name};
    for (const RowPart& part : row_parts) {
      bar.parts.push_back(row.number(part.key).value_or(0));
      cells.push_back(seconds_cell(row.number(part.key)));
    }
    const auto step = row.number("step_time_s");
    cells.push_back(seconds_cell(step));
    bar.value = step ? to_text(to_duration(*step)) : "";
    table.row(std::move(cells));
    if (picture.rows.size() < most_bars) picture.rows.push_back(std::move(bar));
  }
  return {picture.name, picture.title, bar_picture(picture), std::move(table),
          rows.size() > most_bars
              ? fmt::format("The first {} of {} points; the table has all.", most_bars, rows.size())
              : "Mean over ranks of disjoint wall time."};
}

std::optional<Band> band_of(const PointRow& row, const std::string& stem, const std::string& unit) {
  const auto value = row.number(stem + unit);
  if (!value) return std::nullopt;
  return Band{row.number(stem + "_low" + unit).value_or(*value), *value,
              row.number(stem + "_high" + unit).value_or(*value)};
}

KeyFigures figures_of_row(const PointRow& row) {
  KeyFigures out;
  if (const auto days = band_of(row, "run.days", ""))
    out.push_back({"whole run", days_text(*days)});
  if (const auto usd = band_of(row, "run.usd", "")) out.push_back({"cost", dollars_text(*usd)});
  if (const auto tokens = row.number("tokens_per_s"))
    out.push_back({"tokens a day", to_text(Count(*tokens * 86400))});
  if (const auto mwh = band_of(row, "run.energy", "_mwh"))
    out.push_back({"energy", energy_text(*mwh)});
  if (const auto co2 = band_of(row, "run.co2", "_t")) out.push_back({"emissions", co2_text(*co2)});
  if (const auto step = row.number("step_time_s"))
    out.push_back({"step", to_text(to_duration(*step))});
  if (const auto mfu = row.number("mfu")) out.push_back({"MFU", percent(*mfu)});
  if (const auto gib = row.number("memory_gib_per_gpu"))
    out.push_back({"memory per GPU", three_digits(*gib) + " GiB"});
  return out;
}

/// Of many rows: the best by what they are asked for.
KeyFigures best_of_rows(const std::vector<NamedRow>& rows) {
  KeyFigures out;
  const auto best = [&](const char* label, const char* key, bool largest, auto text) {
    const NamedRow* found = nullptr;
    for (const NamedRow& one : rows) {
      const auto value = one.row->number(key);
      if (!value) continue;
      const auto known = found == nullptr ? std::nullopt : found->row->number(key);
      if (!known || (largest ? *value > *known : *value < *known)) found = &one;
    }
    if (found != nullptr) out.push_back({label, text(*found->row->number(key)), found->name});
  };
  best("shortest run", "run.days", false, [](double v) { return days_text({v, v, v}); });
  best("cheapest run", "run.usd", false, [](double v) { return dollars_text({v, v, v}); });
  best("most tokens a day", "tokens_per_s", true,
       [](double v) { return to_text(Count(v * 86400)); });
  best("least energy a token", "run.joules_per_token", false,
       [](double v) { return three_digits(v) + " J"; });
  best("most tokens a joule", "tokens_per_joule", true, [](double v) { return three_digits(v); });
  best("most tokens/s per GPU", "tokens_per_s_per_gpu", true,
       [](double v) { return three_digits(v); });
  best("highest MFU", "mfu", true, [](double v) { return percent(v); });
  return out;
}

/// Step time over two swept keys, where there are two.
std::optional<Chart> heat_of(const Results& results) {
  const Study& study = results.study;
  if (study.axes.size() != 2 || study.joint.size() != 1 || !study.joint.front().empty())
    return std::nullopt;
  HeatPicture picture{"Step over both swept keys", swept_heading(study.axes[0].path),
                      swept_heading(study.axes[1].path)};
  std::vector<std::vector<const TomlValue*>> values(2);
  for (std::size_t point = 0; point < study.num_points(); ++point) {
    const SweepPoint at = study.point(point);
    std::size_t place[2] = {};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::string text = swept_cell(*setting_of(at, study.axes[axis].path));
      auto& names = axis == 0 ? picture.rows : picture.columns;
      const auto found = std::ranges::find(names, text);
      place[axis] = static_cast<std::size_t>(found - names.begin());
      if (found == names.end()) names.push_back(text);
    }
    const std::size_t rows = std::max(picture.values.size(), place[0] + 1);
    picture.values.resize(rows);
    picture.texts.resize(rows);
    auto& cells = picture.values[place[0]];
    auto& texts = picture.texts[place[0]];
    cells.resize(std::max(cells.size(), place[1] + 1));
    texts.resize(cells.size());
    if (!results.rows.has(point)) continue;
    cells[place[1]] = results.rows.row(point).number("step_time_s");
    texts[place[1]] =
        cells[place[1]] ? to_text(to_duration(*cells[place[1]])) : std::string("no answer");
  }
  if (picture.rows.size() > 24 || picture.columns.size() > 12) return std::nullopt;
  TextTable table;
  table.column(picture.rows_name + " / " + picture.columns_name, "", TextTable::Align::left);
  for (const std::string& column : picture.columns) table.column(column);
  for (std::size_t r = 0; r < picture.rows.size(); ++r) {
    picture.values[r].resize(picture.columns.size());
    picture.texts[r].resize(picture.columns.size());
    TableCells cells{picture.rows[r]};
    for (const std::string& text : picture.texts[r]) cells.push_back({text});
    table.row(std::move(cells));
  }
  return Chart{"step_over_keys", picture.title, heat_picture(picture), std::move(table),
               "The larger the square, the longer the step; the shortest is framed."};
}

std::string point_name(const SweepPoint& point) {
  std::string out;
  for (const auto& [path, value] : point)
    out += (out.empty() ? "" : ", ") + swept_heading(path) + " " + swept_cell(value);
  return out;
}

/// Every metric that a row has, in full.
TextTable figures_table(const std::vector<NamedRow>& rows) {
  TextTable table;
  table.column("figure", "", TextTable::Align::left);
  table.column("unit", "", TextTable::Align::left);
  for (const NamedRow& one : rows) table.column(one.name);
  for (const Metric& metric : metrics()) {
    TableCells cells{std::string(metric.key), std::string(metric.unit)};
    bool any = false;
    for (const NamedRow& one : rows) {
      const auto value = value_of(metric, *one.row);
      any = any || value.has_value();
      cells.push_back(rounded(value));
    }
    if (any) table.row(std::move(cells));
  }
  return table;
}

/// Of the points that have an answer the first by the least days, else by the most tokens a day.
const NamedRow* fastest_of(const std::vector<NamedRow>& rows) {
  const NamedRow* out = nullptr;
  for (const NamedRow& one : rows) {
    if (one.row->unanswered() || !one.row->number("compute_s")) continue;
    const auto tokens = one.row->number("tokens_per_s");
    if (tokens && (out == nullptr || *tokens > out->row->number("tokens_per_s"))) out = &one;
  }
  return out;
}

/// What limits the fastest and how far its forecast may lie off: a sentence each.
void add_sentences(ToldSection& glance, const std::vector<NamedRow>& rows) {
  const NamedRow* fastest = fastest_of(rows);
  if (fastest == nullptr) return;
  const PointRow& row = *fastest->row;
  const auto part = [&](std::size_t i) { return row.number(row_parts[i].key).value_or(0); };
  const std::string of = rows.size() == 1 ? "" : ", of " + fastest->name;
  glance.blocks.emplace_back(Paragraph{"What limits it" + of + ": " +
                                       largest_loss({part(0), part(1), part(2), part(3), part(4)}) +
                                       "."});
  const auto low = row.number("step_time_low_s"), high = row.number("step_time_high_s"),
             level = row.number("confidence.level"), sources = row.number("confidence.sources");
  if (low && high && level && sources)
    glance.blocks.emplace_back(Paragraph{fmt::format(
        "Confidence{}: in {:g} % of such forecasts the measured step lies between {} and "
        "{} (errors of {:g} sources).",
        of, 100 * *level, to_text(to_duration(*low)), to_text(to_duration(*high)), *sources)});
  else
    glance.blocks.emplace_back(Paragraph{"Confidence" + of + ": no error bar is kept with it."});
}

/// Inputs of the points; none where none can be read.
std::optional<ToldSection> inputs_of(const Study& study, const Catalogue& catalogue) {
  constexpr std::size_t most_points = 200;
  std::vector<Scenario> scenarios;
  for (std::size_t point = 0; point < std::min(study.num_points(), most_points); ++point) {
    try {
      scenarios.push_back(read_scenario(study.document_of(study.point(point)), catalogue));
    } catch (const InputError&) {  // the point says so itself
    }
  }
  if (scenarios.empty()) return std::nullopt;
  std::vector<const Scenario*> all;
  for (const Scenario& scenario : scenarios) all.push_back(&scenario);
  ToldSection out = inputs_section(all, catalogue);
  if (study.num_points() > most_points)
    out.blocks.emplace_back(Paragraph{fmt::format("Of the first {} points.", most_points)});
  return out;
}

constexpr const char* only_kept =
    "Not on this page: the critical path, times of each stage, memory over the step, pipeline, "
    "collectives and sources of the inputs: a kept result holds none of them; stepcast report of "
    "its scenario does.";

}  // namespace

std::vector<ToldSection> rows_sections(const std::vector<NamedRow>& rows) {
  ToldSection glance{"At a glance", {}};
  const auto answered = std::ranges::count_if(
      rows, [](const NamedRow& one) { return !one.row->unanswered().has_value(); });
  if (rows.size() == 1 && answered == 1)
    glance.blocks.emplace_back(figures_of_row(*rows.front().row));
  else if (answered > 0)
    glance.blocks.emplace_back(best_of_rows(rows));
  glance.blocks.emplace_back(
      Paragraph{fmt::format("{} of {} have an answer.", answered, rows.size())});
  add_sentences(glance, rows);
  std::vector<ToldSection> out{std::move(glance)};
  if (answered > 0) out.push_back({"Where the steps go", {parts_of_rows(rows)}});
  return out;
}

Told results_page(const std::string& title, const std::vector<NamedRow>& rows,
                  const std::string& printed, const Origin& origin) {
  Told out{title, "Kept results of stepcast.", rows_sections(rows)};
  if (!printed.empty())
    out.sections.push_back({"As it was printed", {Listing{"The whole answer", printed, false}}});
  out.sections.push_back({"All figures", {ToldTable{"As they were kept", figures_table(rows)}}});
  ToldSection made = origin_section(origin, nullptr);
  made.blocks.emplace_back(Paragraph{only_kept});
  out.sections.push_back(std::move(made));
  return out;
}

Told sweep_page(const Results& results, const TextTable& table, const Catalogue& catalogue,
                const Origin& origin) {
  std::vector<PointRow> kept;
  std::vector<std::string> names;
  for (std::size_t point = 0; point < results.rows.size(); ++point)
    if (results.rows.has(point)) {
      names.push_back(point_name(results.study.point(point)));
      kept.push_back(results.rows.row(point));
    }
  std::vector<NamedRow> rows;
  for (std::size_t i = 0; i < kept.size(); ++i) rows.push_back({names[i], &kept[i]});
  const TomlValue* title = results.study.base.find("title");
  Told out{title != nullptr ? swept_cell(*title) : "A sweep",
           fmt::format("Forecasts of the {} points of a sweep.", results.rows.size()),
           rows_sections(rows)};
  for (auto chart : {heat_of(results), curves_of(results)})
    if (chart && out.sections.size() > 1)
      out.sections[1].blocks.insert(out.sections[1].blocks.begin(), std::move(*chart));
  out.sections.push_back({"Points", {ToldTable{"All points", table}}});
  if (const std::string known = references_text(results); !known.empty())
    out.sections.back().blocks.emplace_back(Listing{"Known figures beside them", known, false});
  if (auto inputs = inputs_of(results.study, catalogue)) out.sections.push_back(std::move(*inputs));
  ToldSection made = origin_section(origin, nullptr);
  made.blocks.emplace_back(Listing{"Scenario (TOML)", write_toml(results.study.whole)});
  out.sections.push_back(std::move(made));
  return out;
}

Told comparison_page(const Comparison& c, const Catalogue& catalogue, const Origin& origin) {
  std::vector<NamedRow> rows;
  for (const Side& side : c.sides) rows.push_back({side.name, &side.row});
  std::string title;
  for (const Side& side : c.sides)
    if (title.size() < 60) title += (title.empty() ? "" : " | ") + side.name;
  Told out{title, fmt::format("{} sides beside each other.", c.sides.size()), rows_sections(rows)};
  out.sections[0].blocks.emplace_back(ToldTable{"Side by side", sides_table(c)});
  ToldSection changes{"What the difference comes from", {}};
  const auto answered = std::ranges::count_if(c.sides, &Side::answered);
  if (answered > 1) changes.blocks.emplace_back(difference_chart(c));
  changes.blocks.emplace_back(Listing{"All figures", as_text(told_of(c)), false});
  out.sections.push_back(std::move(changes));
  std::vector<const Scenario*> scenarios;
  for (const Side& side : c.sides)
    if (side.scenario) scenarios.push_back(&*side.scenario);
  if (!scenarios.empty()) out.sections.push_back(inputs_section(scenarios, catalogue));
  ToldSection made = origin_section(origin, nullptr);
  for (const Side& side : c.sides)
    if (side.scenario)
      made.blocks.emplace_back(Listing{"Resolved scenario of " + side.name,
                                       write_toml(resolved_document(*side.scenario))});
  out.sections.push_back(std::move(made));
  return out;
}

}  // namespace stepcast::sim
