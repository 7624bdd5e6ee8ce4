#include "calibrate/show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/units_text.hpp"
#include "sim/text_table.hpp"

namespace stepcast::calibrate {
namespace {

constexpr std::array<const char*, 9> families = {"gemm",        "attention", "elementwise",
                                                 "collectives", "copies",    "nccl",
                                                 "launches",    "overlaps",  "powers"};

struct Summary {
  std::map<std::string, std::array<std::size_t, families.size()>> rows_by_gpu;
  std::map<std::string, std::size_t> rows_by_reference;
};

template <class Row>
void count(Summary& summary, std::size_t family, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    ++summary.rows_by_gpu[row.gpu][family];
    ++summary.rows_by_reference[row.source.reference];
  }
}

/// Rows of one family by who measured them, with how well they are known.
struct Group {
  std::size_t rows = 0;
  std::vector<double> spreads, errors;
  std::int64_t samples = 0, throttled = 0;
};

template <class Row>
void add_groups(sim::TextTable& out, const char* family, const std::vector<Row>& rows) {
  std::map<std::string, Group> groups;
  for (const Row& row : rows) {
    Group& group = groups[row.source.on.device.empty() ? "published" : row.source.source];
    ++group.rows;
    if (row.quality.samples == 0) continue;
    group.spreads.push_back(row.quality.spread);
    group.errors.push_back(row.quality.error);
    group.samples += row.quality.samples;
    group.throttled += row.quality.throttled;
  }
  for (auto& [source, group] : groups) {
    const bool known = !group.spreads.empty();
    std::sort(group.spreads.begin(), group.spreads.end());
    const auto percent = [](double share) { return fmt::format("{:.2f}", 100.0 * share); };
    out.row(
        {family, std::to_string(group.rows), known ? std::to_string(group.samples) : "-",
         known ? std::to_string(group.throttled) : "-",
         known ? percent(group.spreads[group.spreads.size() / 2]) : "-",
         known ? percent(group.spreads.back()) : "-",
         known ? fmt::format("{:.1e}", *std::max_element(group.errors.begin(), group.errors.end()))
               : "-",
         source});
  }
}

/// How well the rows are known; spread is (third - first quartile) / median.
std::string quality_text(const sim::CalibrationTable& table) {
  sim::TextTable out;
  out.column("family", "", sim::TextTable::Align::left);
  for (const char* heading : {"rows", "samples", "throttled"}) out.column(heading);
  out.column("spread", "median %");
  out.column("spread", "worst %");
  out.column("error", "largest");
  out.column("source", "", sim::TextTable::Align::left);
  add_groups(out, "gemm", table.gemm);
  add_groups(out, "attention", table.attention);
  add_groups(out, "elementwise", table.elementwise);
  add_groups(out, "collectives", table.collectives);
  add_groups(out, "copies", table.copies);
  add_groups(out, "launches", table.launches);
  add_groups(out, "overlaps", table.overlaps);
  return out.text();
}

/// The machines that were measured, with their versions and clocks.
std::string machines_text(const sim::CalibrationTable& table) {
  std::set<sim::MeasuredOn> machines;
  const auto collect = [&](const auto& rows) {
    for (const auto& row : rows)
      if (!row.source.on.device.empty()) machines.insert(row.source.on);
  };
  collect(table.gemm);
  collect(table.attention);
  collect(table.elementwise);
  collect(table.collectives);
  collect(table.copies);
  collect(table.launches);
  collect(table.overlaps);
  collect(table.powers);
  std::string text;
  for (const sim::MeasuredOn& on : machines) {
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

/// Launches, overlap and power: few rows, so all of them.
std::string small_families(const sim::CalibrationTable& table) {
  std::string text;
  const auto us = [](Duration d) { return seconds(d) * 1e6; };
  for (const auto& row : table.launches)
    text += fmt::format("launch of a {} on {}: {:.2f} us\n", row.what, row.gpu, us(row.duration));
  for (const auto& row : table.powers)
    text += fmt::format("power of {}: {:.0f} W under {}\n", row.gpu, row.power.value, row.load);
  for (const auto& row : table.overlaps)
    text += fmt::format("{} beside {} of {} over {}: {:.2f} times as long, the collective {:.2f}\n",
                        row.kernel, row.collective, to_text(row.bytes), row.ranks,
                        seconds(row.kernel_beside) / seconds(row.kernel_alone),
                        seconds(row.collective_beside) / seconds(row.collective_alone));
  return text.empty() ? text : "\n" + text;
}

/// NCCL's own figures, as its log prints them: no measurement, so they are shown, not counted
/// alone.
std::string nccl_tables(const sim::CalibrationTable& table) {
  using Align = sim::TextTable::Align;
  std::string text;
  sim::TextTable figures;
  for (const char* heading : {"NCCL", "GPU", "collective", "algorithm", "protocol"})
    figures.column(heading, "", Align::left);
  for (const char* heading : {"ranks", "nodes"}) figures.column(heading);
  figures.column("latency", "us");
  figures.column("bandwidth", "GB/s");
  for (const auto& row : table.nccl_tuning)
    figures.row({row.nccl, row.gpu, row.collective, row.algorithm, row.protocol,
                 std::to_string(row.ranks), std::to_string(row.nodes),
                 fmt::format("{:.1f}", seconds(row.latency) * 1e6),
                 fmt::format("{:.1f}", row.bandwidth.value / 1e9)});
  if (!table.nccl_tuning.empty()) text += "\nNCCL's own figures\n" + figures.text();
  sim::TextTable choices;
  for (const char* heading : {"NCCL", "GPU", "collective"})
    choices.column(heading, "", Align::left);
  for (const char* heading : {"ranks", "nodes", "size"}) choices.column(heading);
  for (const char* heading : {"algorithm", "protocol"}) choices.column(heading, "", Align::left);
  choices.column("channels");
  for (const auto& row : table.nccl_choices)
    choices.row({row.nccl, row.gpu, row.collective, std::to_string(row.ranks),
                 std::to_string(row.nodes), to_text(row.bytes), row.algorithm, row.protocol,
                 row.channels == 0 ? "-" : std::to_string(row.channels)});
  if (!table.nccl_choices.empty()) text += "\nNCCL's choices\n" + choices.text();
  return text;
}

}  // namespace

std::string describe(const sim::CalibrationTable& table) {
  Summary summary;
  count(summary, 0, table.gemm);
  count(summary, 1, table.attention);
  count(summary, 2, table.elementwise);
  count(summary, 3, table.collectives);
  count(summary, 4, table.copies);
  count(summary, 5, table.nccl_tuning);
  count(summary, 5, table.nccl_choices);
  count(summary, 6, table.launches);
  count(summary, 7, table.overlaps);
  count(summary, 8, table.powers);

  std::string text = fmt::format("{} ({})\n\nrows per GPU\n{:<36}", table.title, table.created, "");
  for (const char* family : families) text += fmt::format(" {:>11}", family);
  text += '\n';
  std::array<std::size_t, families.size()> sums{};
  for (const auto& [gpu, rows] : summary.rows_by_gpu) {
    text += fmt::format("{:<36}", gpu);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      text += fmt::format(" {:>11}", rows[i]);
      sums[i] += rows[i];
    }
    text += '\n';
  }
  text += fmt::format("{:<36}", "all");
  for (const std::size_t sum : sums) text += fmt::format(" {:>11}", sum);

  std::vector<std::pair<std::string, std::size_t>> sources(summary.rows_by_reference.begin(),
                                                           summary.rows_by_reference.end());
  std::stable_sort(sources.begin(), sources.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  text += "\n\nrows  source\n";
  for (const auto& [reference, rows] : sources) text += fmt::format("{:>4}  {}\n", rows, reference);
  return text + "\n" + quality_text(table) + machines_text(table) + small_families(table) +
         nccl_tables(table);
}

}  // namespace stepcast::calibrate
