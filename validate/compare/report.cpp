#include "validate/compare/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/files/text_table.hpp"

namespace stepcast::validate {
namespace {

constexpr std::size_t worst_rows = 10;

struct Errors {
  std::vector<double> ours, nccl;

  void add(const ComparedRow& row) {
    ours.push_back(row.error());
    if (row.nccl_estimate) nccl.push_back(seconds(*row.nccl_estimate) / seconds(row.measured) - 1);
  }
};

struct Totals {
  Errors all, from_1mib, below_1mib;
};

/// Of the rows that count; those without bytes are in neither half.
template <class Chosen>
Totals totals_of(const Comparison& comparison, Chosen chosen) {
  Totals out;
  for (const ComparedRow& row : comparison.rows) {
    if (!row.scored() || !chosen(row)) continue;
    out.all.add(row);
    if (row.bytes > Bytes(0))
      (row.bytes >= Bytes(1 << 20) ? out.from_1mib : out.below_1mib).add(row);
  }
  return out;
}

Totals totals_of(const Comparison& comparison) {
  return totals_of(comparison, [](const ComparedRow&) { return true; });
}

/// "+4.1 %"
std::string signed_percent(double share) { return (share > 0 ? "+" : "") + sim::percent(share); }

std::string microseconds(Duration duration) { return sim::three_digits(seconds(duration) * 1e6); }

std::vector<std::string> score_cells(const Errors& errors) {
  const Score ours = *score_of(errors.ours);
  const auto nccl = score_of(errors.nccl);
  return {sim::grouped(static_cast<std::int64_t>(ours.rows)), sim::percent(ours.median_ape),
          sim::percent(ours.mape), signed_percent(ours.bias),
          nccl ? sim::percent(nccl->median_ape) : "-"};
}

using Group = std::pair<std::vector<std::string>, Errors>;

/// By name, sizes as they grow: "1 - 64 MiB" stands between "64 KiB - 1 MiB" and ">= 64 MiB".
std::vector<std::string> order_of(std::vector<std::string> cells) {
  static const std::map<std::string, std::string> bands = {
      {"< 64 KiB", "0"}, {"64 KiB - 1 MiB", "1"}, {"1 - 64 MiB", "2"}, {">= 64 MiB", "3"}};
  if (const auto band = bands.find(cells.back()); band != bands.end()) cells.back() = band->second;
  return cells;
}

std::vector<Group> groups_of(const Comparison& comparison) {
  std::map<std::vector<std::string>, Group> sorted;
  for (const ComparedRow& row : comparison.rows) {
    if (!row.scored()) continue;
    Group& group = sorted[order_of(row.group)];
    group.first = row.group;
    group.second.add(row);
  }
  std::vector<Group> out;
  for (auto& [order, group] : sorted) out.push_back(std::move(group));
  return out;
}

std::string group_table(const Comparison& comparison) {
  std::vector<Group> lines = groups_of(comparison);
  if (lines.empty()) return "no row is scored\n";
  Totals totals = totals_of(comparison);
  const auto total = [&](const char* name, Errors errors) {
    if (errors.ours.empty()) return;
    std::vector<std::string> cells(comparison.group_headings.size());
    cells.front() = name;
    lines.emplace_back(std::move(cells), std::move(errors));
  };
  total("all", totals.all);
  total("from 1 MiB", totals.from_1mib);
  total("below 1 MiB", totals.below_1mib);

  sim::TextTable table;
  for (const std::string& heading : comparison.group_headings)
    table.column(heading, "", sim::TextTable::Align::left);
  for (const char* heading : {"rows", "median", "mean", "bias", "NCCL's median"})
    table.column(heading);
  for (auto& [cells, errors] : lines) {
    for (std::string& cell : score_cells(errors)) cells.push_back(std::move(cell));
    table.row(std::move(cells));
  }
  return table.text();
}

/// Halves of each GPU generation, where rows have sizes.
std::string generation_table(const Comparison& comparison) {
  std::set<std::string> names;
  for (const ComparedRow& row : comparison.rows)
    if (row.scored() && row.bytes > Bytes(0)) names.insert(row.group.front());
  if (names.empty()) return "";
  sim::TextTable table;
  table.column("GPUs", "", sim::TextTable::Align::left);
  table.column("size", "", sim::TextTable::Align::left);
  for (const char* heading : {"rows", "median", "mean", "bias", "NCCL's median"})
    table.column(heading);
  for (const std::string& name : names) {
    const Totals totals =
        totals_of(comparison, [&](const ComparedRow& row) { return row.group.front() == name; });
    for (const auto& [size, errors] :
         {std::pair{"below 1 MiB", &totals.below_1mib}, {"from 1 MiB", &totals.from_1mib}}) {
      if (errors->ours.empty()) continue;
      std::vector<std::string> cells{name, size};
      for (std::string& cell : score_cells(*errors)) cells.push_back(std::move(cell));
      table.row(std::move(cells));
    }
  }
  return "\n" + table.text();
}

std::string source_table(const Comparison& comparison) {
  std::map<std::string, Errors> sources;
  for (const ComparedRow& row : comparison.rows)
    if (row.scored() && !row.source.empty()) sources[row.source].add(row);
  if (sources.empty()) return "";
  sim::TextTable table;
  table.column("source", "", sim::TextTable::Align::left);
  for (const char* heading : {"rows", "median", "mean", "bias", "NCCL's median"})
    table.column(heading);
  for (const auto& [source, errors] : sources) {
    std::vector<std::string> cells{source};
    for (std::string& cell : score_cells(errors)) cells.push_back(std::move(cell));
    table.row(std::move(cells));
  }
  return "\n" + table.text();
}

std::string worst_table(const Comparison& comparison) {
  std::vector<const ComparedRow*> rows;
  for (const ComparedRow& row : comparison.rows)
    if (row.scored()) rows.push_back(&row);
  const std::size_t count = std::min(worst_rows, rows.size());
  std::stable_sort(rows.begin(), rows.end(), [](const ComparedRow* a, const ComparedRow* b) {
    return std::abs(a->error()) > std::abs(b->error());
  });
  sim::TextTable table;
  using enum sim::TextTable::Align;
  table.column("line");
  table.column("GPU", "", left);
  table.column("kind", "", left);
  table.column("measured", "us");
  table.column("predicted", "us");
  table.column("error");
  table.column("provenance", "", left);
  table.column("what", "", left);
  for (std::size_t i = 0; i < count; ++i) {
    const ComparedRow& row = *rows[i];
    table.row({std::to_string(row.line), row.gpu, row.kind, microseconds(row.measured),
               microseconds(*row.predicted), signed_percent(row.error()), row.provenance,
               row.what});
  }
  return count == 0 ? "" : fmt::format("\nworst {} rows\n{}", count, table.text());
}

/// "14, 20-31"
std::string line_ranges(const std::vector<std::int64_t>& lines) {
  std::string out;
  for (std::size_t i = 0; i < lines.size();) {
    std::size_t last = i;
    while (last + 1 < lines.size() && lines[last + 1] == lines[last] + 1) ++last;
    out += (out.empty() ? "" : ", ") + std::to_string(lines[i]);
    if (last > i) out += "-" + std::to_string(lines[last]);
    i = last + 1;
  }
  return out;
}

std::string not_scored_table(const Comparison& comparison) {
  std::map<std::string, std::vector<std::int64_t>> reasons;
  for (const ComparedRow& row : comparison.rows)
    if (!row.scored()) reasons[row.not_scored].push_back(row.line);
  if (reasons.empty()) return "";
  sim::TextTable table;
  table.column("rows");
  table.column("not scored because", "", sim::TextTable::Align::left);
  table.column("lines", "", sim::TextTable::Align::left);
  for (const auto& [reason, lines] : reasons)
    table.row({std::to_string(lines.size()), reason, line_ranges(lines)});
  return "\n" + table.text();
}

}  // namespace

Summary summary_of(const Comparison& comparison) {
  const Totals totals = totals_of(comparison);
  return {.rows = comparison.rows.size(),
          .all = score_of(totals.all.ours),
          .from_1mib = score_of(totals.from_1mib.ours),
          .below_1mib = score_of(totals.below_1mib.ours),
          .nccl = score_of(totals.all.nccl)};
}

std::string report_text(const Comparison& comparison) {
  const Summary summary = summary_of(comparison);
  std::string out = fmt::format(
      "{} of {}: {} rows, {} scored{}\n", comparison.title, comparison.file, summary.rows,
      summary.all ? summary.all->rows : 0,
      comparison.other_kinds > 0 ? fmt::format("; {} of other kinds", comparison.other_kinds) : "");
  for (const std::string& note : comparison.notes) out += note + "\n";
  out += "Errors of time: median and mean of |predicted / measured - 1|, bias with its sign.\n\n";
  return out + group_table(comparison) + generation_table(comparison) + source_table(comparison) +
         worst_table(comparison) + not_scored_table(comparison);
}

}  // namespace stepcast::validate
