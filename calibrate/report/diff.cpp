#include "calibrate/report/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "calibrate/report/row_text.hpp"
#include "engine/arithmetic.hpp"
#include "sim/files/text_table.hpp"
#include "sim/tables/calibration_columns.hpp"

namespace stepcast::calibrate {
namespace {

using sim::CalibrationTable;
using sim::Family;

/// Rows of one key in both tables.
struct Pair {
  double times[2] = {0.0, 0.0};
  int counts[2] = {0, 0};
  std::string name;
};

/// Repeated measurements of one key count as their mean.
FamilyDiff compare(const Family& family, const std::map<std::vector<sim::Cell>, Pair>& pairs) {
  FamilyDiff out{.family = family.name, .worst = {}};
  std::vector<double> ratios, distances;
  for (const auto& [key, pair] : pairs) {
    if (pair.counts[0] == 0) ++out.only_second;
    if (pair.counts[1] == 0) ++out.only_first;
    if (pair.counts[0] == 0 || pair.counts[1] == 0) continue;
    ++out.both;
    if (!(pair.times[0] > 0.0 && pair.times[1] > 0.0)) continue;
    const double ratio = pair.times[1] / pair.counts[1] / (pair.times[0] / pair.counts[0]);
    ratios.push_back(ratio);
    distances.push_back(std::abs(ratio - 1.0));
    if (std::abs(std::log(ratio)) <= std::abs(std::log(out.worst_ratio))) continue;
    out.worst_ratio = ratio;
    out.worst = pair.name;
  }
  out.timed = ratios.size();
  if (ratios.empty()) return out;
  out.median_ratio = median(ratios);
  out.median_distance = median(distances);
  return out;
}

}  // namespace

std::vector<FamilyDiff> diff(const CalibrationTable& first, const CalibrationTable& second) {
  std::vector<FamilyDiff> out;
  for (const Family& family : sim::families()) {
    std::map<std::vector<sim::Cell>, Pair> pairs;
    for (const auto& [table, side] : {std::pair{&first, 0}, {&second, 1}})
      for (std::size_t row = 0; row < family.size(*table); ++row) {
        Pair& pair = pairs[sim::key_of(family, *table, row)];
        pair.times[side] += row_time(family, *table, row);
        ++pair.counts[side];
        pair.name = row_name(family, *table, row);
      }
    out.push_back(compare(family, pairs));
  }
  return out;
}

std::string to_text(const std::vector<FamilyDiff>& families) {
  sim::TextTable table;
  table.column("family", "", sim::TextTable::Align::left);
  for (const char* heading : {"in both", "only first", "only second"}) table.column(heading);
  table.column("median", "second/first");
  table.column("median", "|ratio - 1| %");
  table.column("worst", "second/first");
  table.column("which", "", sim::TextTable::Align::left);
  for (const FamilyDiff& f : families) {
    if (f.both + f.only_first + f.only_second == 0) continue;
    const bool known = f.timed > 0;
    table.row({f.family, std::to_string(f.both), std::to_string(f.only_first),
               std::to_string(f.only_second), known ? fmt::format("{:.3f}", f.median_ratio) : "-",
               known ? fmt::format("{:.1f}", 100.0 * f.median_distance) : "-",
               known ? fmt::format("{:.3f}", f.worst_ratio) : "-", f.worst});
  }
  return table.text();
}

}  // namespace stepcast::calibrate
