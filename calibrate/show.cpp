#include "calibrate/show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

namespace stepcast::calibrate {
namespace {

constexpr std::array<const char*, 5> families = {"gemm", "attention", "elementwise", "collectives",
                                                 "copies"};

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

}  // namespace

std::string describe(const sim::CalibrationTable& table) {
  Summary summary;
  count(summary, 0, table.gemm);
  count(summary, 1, table.attention);
  count(summary, 2, table.elementwise);
  count(summary, 3, table.collectives);
  count(summary, 4, table.copies);

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
  return text;
}

}  // namespace stepcast::calibrate
