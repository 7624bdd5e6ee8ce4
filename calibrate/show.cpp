#include "calibrate/show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

#include "engine/units_text.hpp"
#include "sim/text_table.hpp"

namespace stepcast::calibrate {
namespace {

constexpr std::array<const char*, 6> families = {"gemm",        "attention", "elementwise",
                                                 "collectives", "copies",    "nccl"};

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

  std::string text = fmt::format("{} ({})\n\nrows per GPU\n{:<18}", table.title, table.created, "");
  for (const char* family : families) text += fmt::format(" {:>11}", family);
  text += '\n';
  std::array<std::size_t, families.size()> sums{};
  for (const auto& [gpu, rows] : summary.rows_by_gpu) {
    text += fmt::format("{:<18}", gpu);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      text += fmt::format(" {:>11}", rows[i]);
      sums[i] += rows[i];
    }
    text += '\n';
  }
  text += fmt::format("{:<18}", "all");
  for (const std::size_t sum : sums) text += fmt::format(" {:>11}", sum);

  std::vector<std::pair<std::string, std::size_t>> sources(summary.rows_by_reference.begin(),
                                                           summary.rows_by_reference.end());
  std::stable_sort(sources.begin(), sources.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  text += "\n\nrows  source\n";
  for (const auto& [reference, rows] : sources) text += fmt::format("{:>4}  {}\n", rows, reference);
  return text + nccl_tables(table);
}

}  // namespace stepcast::calibrate
