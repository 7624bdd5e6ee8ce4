#include "sim/output/results_file.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "sim/files/whole_file.hpp"
#include "sim/scenario/file.hpp"
#include "sim/tables/column_file.hpp"
#include "sim/told/json.hpp"
#include "sim/told/row_members.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

/// Swept integers as integers, everything else as it was written.
void write_swept(ColumnWriter& file, const Results& results, const std::string& key) {
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  std::size_t rows = 0;
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    if (!results.rows.has(i)) continue;
    ++rows;
    const SweepPoint point = results.study.point(i);
    const TomlValue* value = setting_of(point, key);
    if (value == nullptr) continue;
    if (const auto* integer = std::get_if<std::int64_t>(&value->data)) integers.push_back(*integer);
    texts.push_back(value->text() != nullptr ? *value->text() : write_toml_value(*value));
  }
  const std::string dataset = "/points/sweep." + key;
  if (integers.size() == rows)
    file.column(dataset, std::span<const std::int64_t>(integers), "");
  else if (texts.size() == rows)
    file.column(dataset, std::span<const std::string>(texts));
}

std::int64_t absent_or(std::optional<bool> flag) { return flag ? std::int64_t{*flag} : -1; }

/// A member of the rows as a column. Counts are 0 where a point could not be read, flags -1.
struct Column {
  using Kind = RowMember::Kind;
  RowMember member;
  std::vector<double> numbers{};
  std::vector<std::int64_t> counts{};
  std::vector<std::string> texts{};

  void add(const PointRow& row) {
    if (member.kind == Kind::metric)
      numbers.push_back(
          value_of(*member.metric, row).value_or(std::numeric_limits<double>::quiet_NaN()));
    else if (member.kind == Kind::number)
      numbers.push_back(row.number(member.path).value_or(std::numeric_limits<double>::quiet_NaN()));
    else if (member.kind == Kind::flag)
      counts.push_back(absent_or(row.flag(member.path)));
    else if (member.kind == Kind::count)
      counts.push_back(static_cast<std::int64_t>(row.number(member.path).value_or(0.0)));
    else if (member.kind == Kind::list)
      texts.push_back(row.written(member.path).value_or(""));
    else
      texts.push_back(row.text(member.path).value_or(""));
  }
  void write(ColumnWriter& file) const {
    const std::string dataset = "/points/" + member.path;
    if (member.kind == Kind::metric)
      file.column(dataset, std::span<const double>(numbers), std::string(member.metric->unit));
    else if (member.kind == Kind::number)
      file.column(dataset, std::span<const double>(numbers), "");
    else if (member.kind == Kind::count || member.kind == Kind::flag)
      file.column(dataset, std::span<const std::int64_t>(counts),
                  member.kind == Kind::flag ? "flag" : "");
    else
      file.column(dataset, std::span<const std::string>(texts));
  }
};

/// Cells held at a time: of more rows fewer columns, and the rows are read again for the next.
constexpr std::size_t most_cells = 2'000'000;

/// One row at a time is held whole.
void write_members(ColumnWriter& file, const Results& results, std::span<RowMember> members) {
  std::vector<Column> columns;
  for (RowMember& member : members) columns.push_back({std::move(member)});
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    if (!results.rows.has(i)) continue;
    const PointRow row = results.rows.row(i);
    for (Column& column : columns) column.add(row);
  }
  for (const Column& column : columns) column.write(file);
}

void write_points(ColumnWriter& file, const Results& results) {
  file.attribute("/", "schema_version", std::int64_t{1});
  file.attribute("/", "scenario", write_toml(results.study.base));
  file.attribute("/", "interrupted", std::int64_t{results.interrupted ? 1 : 0});
  std::string swept;  // in the order of the sweep, which groups do not keep
  for (const std::string& key : results.study.keys) swept += (swept.empty() ? "" : "\n") + key;
  file.attribute("/", "swept", swept);
  file.group("/points");
  for (const std::string& key : results.study.keys) write_swept(file, results, key);
  std::vector<RowMember> members = row_members(results.study.base.find("collective") != nullptr);
  const std::size_t at_once = std::max<std::size_t>(1, most_cells / results.rows.size());
  for (std::span<RowMember> left = members; !left.empty();) {
    const std::size_t next = std::min(at_once, left.size());
    write_members(file, results, left.first(next));
    left = left.subspan(next);
  }
}

/// None for a single run that was interrupted.
std::optional<std::string> scenario_text(const Results& results) {
  if (results.study.is_sweep) return write_toml(results.study.whole);
  if (!results.single) return std::nullopt;
  return write_toml(resolved_document(scenario_of(*results.single)));
}

}  // namespace

void write_reports(const std::string& folder, OutputMark mark, const Results& results) {
  const fs::path path(folder);
  WholeFile json((path / "results.json").string()), scenario((path / "scenario.toml").string());
  const auto columns = write_columns((path / "results.h5").string());
  write_json(results, [&](std::string_view text) { json.write(text); });
  json.write("\n");
  json.seal();
  write_points(*columns, results);
  columns->seal();
  const auto text = scenario_text(results);
  if (text) {
    scenario.write(*text);
    scenario.seal();
    mark.scenario = id_of_text(*text);
    write_mark(folder, mark);
  }
  std::vector<WholeFile*> files{&json, &columns->file()};
  if (text) files.push_back(&scenario);
  keep_together(files);
}

}  // namespace stepcast::sim
