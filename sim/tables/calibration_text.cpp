#include "sim/tables/calibration_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/files/text_table.hpp"
#include "sim/tables/calibration_columns.hpp"

namespace stepcast::sim {
namespace {

using Align = TextTable::Align;

/// `take(family, row)` for every row of the table.
template <class Take>
void each_row(const CalibrationTable& table, Take&& take) {
  for (const Family& family : families())
    for (std::size_t row = 0; row < family.size(table); ++row) take(family, row);
}

std::string gpu_of(const Family& family, const CalibrationTable& table, std::size_t row) {
  return exact_text(family.columns.front().get(table, row));
}

std::string rows_by_gpu(const CalibrationTable& table) {
  std::map<std::string, std::map<std::string, std::int64_t>> by_gpu;
  each_row(table, [&](const Family& family, std::size_t row) {
    ++by_gpu[gpu_of(family, table, row)][family.name];
  });
  TextTable out;
  out.column("rows of", "", Align::left);
  std::vector<std::string> all{"all"};
  for (const Family& family : families())
    if (const auto rows = static_cast<std::int64_t>(family.size(table)); rows > 0) {
      out.column(family.name);
      all.push_back(grouped(rows));
    }
  for (auto& [gpu, rows] : by_gpu) {
    std::vector<std::string> cells{gpu};
    for (const Family& family : families())
      if (family.size(table) > 0) cells.push_back(grouped(rows[family.name]));
    out.row(std::move(cells));
  }
  out.row(std::move(all));
  return out.text();
}

/// Who stands behind the rows, most rows first: a machine that was measured, or a publication.
std::string sources_text(const CalibrationTable& table) {
  struct Source {
    std::string name;
    std::int64_t rows = 0;
    std::set<std::string> families, confidence;
  };
  std::map<std::string, Source> by_name;
  each_row(table, [&](const Family& family, std::size_t row) {
    const RowSource& from = *family.source(table, row);
    const bool measured = !from.on.device.empty();
    const std::string name =
        measured ? "measured on " + from.on.device + ", " + from.on.date : from.reference;
    Source& source = by_name[name];
    source.name = name;
    ++source.rows;
    source.families.insert(family.name);
    source.confidence.insert(from.confidence);
  });
  std::vector<Source> sources;
  for (auto& [name, source] : by_name) sources.push_back(std::move(source));
  std::stable_sort(sources.begin(), sources.end(),
                   [](const Source& a, const Source& b) { return a.rows > b.rows; });
  TextTable out;
  out.column("rows");
  for (const char* heading : {"families", "confidence", "source"})
    out.column(heading, "", Align::left);
  for (const Source& source : sources)
    out.row({grouped(source.rows), fmt::format("{}", fmt::join(source.families, ", ")),
             fmt::format("{}", fmt::join(source.confidence, ", ")), source.name});
  return out.text();
}

/// Rows of one family by who measured them, with how well they are known.
struct Group {
  std::size_t rows = 0;
  std::vector<double> spreads;
  double error = 0.0;
  std::int64_t samples = 0, throttled = 0;
};

void add_groups(TextTable& out, const Family& family, const CalibrationTable& table) {
  std::map<std::string, Group> groups;
  for (std::size_t row = 0; row < family.size(table); ++row) {
    const RowSource& from = *family.source(table, row);
    const Quality quality = family.quality(table, row);
    Group& group = groups[from.on.device.empty() ? "published" : from.source];
    ++group.rows;
    if (quality.samples == 0) continue;
    group.spreads.push_back(quality.spread);
    group.error = std::max(group.error, quality.error);
    group.samples += quality.samples;
    group.throttled += quality.throttled;
  }
  for (auto& [source, group] : groups) {
    std::vector<std::string> cells{family.name, std::to_string(group.rows)};
    std::sort(group.spreads.begin(), group.spreads.end());
    const auto percent = [](double share) { return fmt::format("{:.2f}", 100.0 * share); };
    if (group.spreads.empty())
      cells.insert(cells.end(), 5, "-");
    else
      cells.insert(cells.end(),
                   {std::to_string(group.samples), std::to_string(group.throttled),
                    percent(group.spreads[group.spreads.size() / 2]), percent(group.spreads.back()),
                    fmt::format("{:.1e}", group.error)});
    cells.push_back(source);
    out.row(std::move(cells));
  }
}

/// How well the rows are known; spread is (third - first quartile) / median.
std::string quality_text(const CalibrationTable& table) {
  TextTable out;
  out.column("family", "", Align::left);
  for (const char* heading : {"rows", "samples", "throttled"}) out.column(heading);
  out.column("spread", "median %");
  out.column("spread", "worst %");
  out.column("error", "largest");
  out.column("source", "", Align::left);
  for (const Family& family : families()) add_groups(out, family, table);
  return out.text();
}

/// The machines that were measured, with their versions and clocks.
std::string machines_text(const CalibrationTable& table) {
  std::set<MeasuredOn> machines;
  each_row(table, [&](const Family& family, std::size_t row) {
    const MeasuredOn& on = family.source(table, row)->on;
    if (!on.device.empty()) machines.insert(on);
  });
  std::string text;
  for (const MeasuredOn& on : machines) {
    text += fmt::format("\n{} on {}: {}\n", on.device, on.date, on.command);
    for (const auto& [what, value] : {std::pair{"driver", on.driver},
                                      {"runtime", on.runtime},
                                      {"products", on.gemm_library},
                                      {"collectives", on.collective_library},
                                      {"clocks", on.clocks}})
      if (!value.empty()) text += fmt::format("  {}: {}\n", what, value);
  }
  return text;
}

/// All rows of a family, in those of its columns that say something.
std::string rows_text(const Family& family, const CalibrationTable& table) {
  TextTable out;
  std::vector<const Column*> shown;
  for (const Column& column : family.columns)
    for (std::size_t row = 0; row < family.size(table); ++row)
      if (says_something(column.get(table, row))) {
        shown.push_back(&column);
        out.column(column.name, "", column.stored == Stored::text ? Align::left : Align::right);
        break;
      }
  for (std::size_t row = 0; row < family.size(table); ++row) {
    std::vector<std::string> cells;
    for (const Column* column : shown) {
      const Cell cell = column->get(table, row);
      cells.push_back(says_something(cell) ? readable_text(*column, cell) : "-");
    }
    out.row(std::move(cells));
  }
  return fmt::format("\n{}\n{}", family.name, out.text());
}

}  // namespace

std::string describe(const CalibrationTable& table) {
  std::string text =
      fmt::format("{} ({})\n\n{}\n{}\n{}{}", table.title, table.created, rows_by_gpu(table),
                  sources_text(table), quality_text(table), machines_text(table));
  for (const Family& family : families())
    if (family.few && family.size(table) > 0) text += rows_text(family, table);
  return text;
}

}  // namespace stepcast::sim
