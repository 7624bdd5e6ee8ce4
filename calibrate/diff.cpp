#include "calibrate/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/units_text.hpp"
#include "sim/calibration_keys.hpp"
#include "sim/text_table.hpp"

namespace stepcast::calibrate {
namespace {

// What a row's figure is as a time, up to a factor that rows of one key share; 0: none.
double inverse(double rate) { return rate > 0.0 ? 1.0 / rate : 0.0; }
double time_of(const sim::GemmRow& row) { return inverse(row.rate.value); }
double time_of(const sim::AttentionRow& row) { return inverse(row.rate.value); }
double time_of(const sim::ElementwiseRow& row) { return seconds(row.duration); }
double time_of(const sim::CollectiveRow& row) {
  return row.duration > Duration(0) ? seconds(row.duration) : inverse(row.busbw.value);
}
double time_of(const sim::CopyRow& row) { return inverse(row.rate.value); }
double time_of(const sim::LaunchRow& row) { return seconds(row.duration); }
double time_of(const sim::OverlapRow& row) { return seconds(row.kernel_beside); }
double time_of(const sim::PowerRow& row) { return inverse(row.power.value); }
double time_of(const sim::NcclTuningRow& row) { return seconds(row.latency); }

std::string name_of(const sim::GemmRow& r) {
  return fmt::format("{} {}x{}x{} {}{}", r.dtype, r.m, r.n, r.k, r.layout,
                     r.cache == "hot" ? " hot" : "");
}
std::string name_of(const sim::AttentionRow& r) {
  return fmt::format("{} {} s={} d={} h={}", r.implementation, r.pass, r.sequence, r.head_dim,
                     r.heads);
}
std::string name_of(const sim::ElementwiseRow& r) {
  return fmt::format("{} {} {}x{}", r.kind, r.pass, r.tokens, r.width);
}
std::string name_of(const sim::CollectiveRow& r) {
  return fmt::format("{} {} of {}", r.collective, to_text(r.bytes), r.ranks);
}
std::string name_of(const sim::CopyRow& r) {
  return fmt::format("{} {}", r.what, to_text(r.bytes));
}
std::string name_of(const sim::LaunchRow& r) { return r.what; }
std::string name_of(const sim::OverlapRow& r) { return r.kernel + " beside " + r.collective; }
std::string name_of(const sim::PowerRow& r) { return r.load; }
std::string name_of(const sim::NcclTuningRow& r) { return r.algorithm + " " + r.protocol; }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

/// Repeated measurements of one key count as their mean.
template <class Row>
FamilyDiff diff_rows(const char* family, const std::vector<Row>& first,
                     const std::vector<Row>& second) {
  struct Known {
    double times[2] = {0.0, 0.0};
    int counts[2] = {0, 0};
    const Row* row = nullptr;
  };
  std::map<decltype(sim::key_of(std::declval<const Row&>())), Known> known;
  for (const auto& [rows, side] : {std::pair{&first, 0}, {&second, 1}})
    for (const Row& row : *rows) {
      Known& entry = known[sim::key_of(row)];
      entry.row = &row;
      entry.times[side] += time_of(row);
      ++entry.counts[side];
    }
  FamilyDiff out{.family = family, .worst = {}};
  std::vector<double> ratios, distances;
  for (const auto& [key, entry] : known) {
    if (entry.counts[0] == 0) ++out.only_second;
    if (entry.counts[1] == 0) ++out.only_first;
    if (entry.counts[0] == 0 || entry.counts[1] == 0) continue;
    ++out.both;
    if (!(entry.times[0] > 0.0 && entry.times[1] > 0.0)) continue;
    const double ratio = entry.times[1] / entry.counts[1] / (entry.times[0] / entry.counts[0]);
    ratios.push_back(ratio);
    distances.push_back(std::abs(ratio - 1.0));
    if (std::abs(std::log(ratio)) <= std::abs(std::log(out.worst_ratio))) continue;
    out.worst_ratio = ratio;
    out.worst = name_of(*entry.row);
  }
  if (ratios.empty()) return out;
  out.median_ratio = median(ratios);
  out.median_distance = median(distances);
  return out;
}

}  // namespace

std::vector<FamilyDiff> diff(const sim::CalibrationTable& first,
                             const sim::CalibrationTable& second) {
  return {diff_rows("gemm", first.gemm, second.gemm),
          diff_rows("attention", first.attention, second.attention),
          diff_rows("elementwise", first.elementwise, second.elementwise),
          diff_rows("collectives", first.collectives, second.collectives),
          diff_rows("copies", first.copies, second.copies),
          diff_rows("launches", first.launches, second.launches),
          diff_rows("overlaps", first.overlaps, second.overlaps),
          diff_rows("powers", first.powers, second.powers),
          diff_rows("nccl_tuning", first.nccl_tuning, second.nccl_tuning)};
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
    const bool known = f.both > 0;
    table.row({f.family, std::to_string(f.both), std::to_string(f.only_first),
               std::to_string(f.only_second), known ? fmt::format("{:.3f}", f.median_ratio) : "-",
               known ? fmt::format("{:.1f}", 100.0 * f.median_distance) : "-",
               known ? fmt::format("{:.3f}", f.worst_ratio) : "-", f.worst});
  }
  return table.text();
}

}  // namespace stepcast::calibrate
