#include "sim/run/memory_odds.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>

#include "engine/check.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/numbers.hpp"

namespace stepcast::sim {
namespace {

// Estimates of 2026-11-28, chosen on the shipped peaks: no other source has judged them.
constexpr double row_sigma = 0.03;     // of a row's log ratio
constexpr double unknown_sigma = 0.2;  // of a source that nobody has measured
constexpr double unknown_weight = 0.5;
constexpr double whole_source = 20;  // rows from which on a source weighs as any other
constexpr double other_kind = 0.5;   // weight of rows of another kind

double normal_below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

const char* type_of(workloads::Recipe recipe) {
  using enum workloads::Recipe;
  switch (recipe) {
    case none:
      return "16 bit";
    case mxfp8:
      return "mxfp8";
    case nvfp4:
      return "nvfp4";
    default:
      return "fp8";
  }
}

std::size_t column_of(const CsvFile& file, const std::string& name) {
  const auto at = std::ranges::find(file.header, name);
  if (at == file.header.end())
    throw InputError(file.path + ":1", "column " + name + " is missing",
                     "stepcast-validate confidence --write makes the file");
  return static_cast<std::size_t>(at - file.header.begin());
}

}  // namespace

std::string kind_of(const Scenario& s) {
  return std::string(s.model.experts.count > 0 ? "MoE " : "dense ") + type_of(s.precision.recipe);
}

namespace {

std::vector<MemoryPeak> peaks_in(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const CsvFile file = read_csv(path);
  const std::size_t source = column_of(file, "source"), ratio = column_of(file, "log_ratio"),
                    kind = column_of(file, "kind");
  std::vector<MemoryPeak> out;
  for (const CsvRow& row : file.rows) {
    const auto value = number_in<double>(row.cells[ratio]);
    if (!value)
      throw InputError(file.path + ":" + std::to_string(row.line),
                       "'" + std::string(row.cells[ratio]) + "' in column log_ratio is no number",
                       "ln(measured / forecast)");
    out.push_back({std::string(row.cells[source]), *value, std::string(row.cells[kind])});
  }
  return out;
}

}  // namespace

MemoryOdds::MemoryOdds(const std::string& path) : MemoryOdds(peaks_in(path)) {}

MemoryOdds::MemoryOdds(std::vector<MemoryPeak> peaks) {
  std::map<std::string_view, double> rows_of;
  for (const MemoryPeak& peak : peaks) rows_of[peak.source] += 1.0;
  for (const MemoryPeak& peak : peaks)
    rows_.push_back({peak, 1.0 / std::max(whole_source, rows_of[peak.source])});
}

MemoryOdds MemoryOdds::without(const std::string& source) const {
  MemoryOdds out = *this;
  std::erase_if(out.rows_, [&](const Row& row) { return row.peak.source == source; });
  return out;
}

double MemoryOdds::fits(const std::string& kind, Bytes needed, Bytes card) const {
  if (rows_.empty()) return needed <= card ? 1.0 : 0.0;
  const double room = std::log(static_cast<double>(std::max<std::int64_t>(1, card.value)) /
                               static_cast<double>(std::max<std::int64_t>(1, needed.value)));
  double below = unknown_weight * normal_below(room / unknown_sigma), all = unknown_weight;
  for (const Row& row : rows_) {
    const double weight = row.peak.kind == kind ? row.weight : other_kind * row.weight;
    below += weight * normal_below((room - row.peak.log_ratio) / row_sigma);
    all += weight;
  }
  return below / all;
}

}  // namespace stepcast::sim
