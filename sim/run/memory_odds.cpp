#include "sim/run/memory_odds.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "engine/arithmetic.hpp"

namespace stepcast::sim {
namespace {

// Estimates of 2026-11-28, chosen on the shipped peaks: no other source has judged them.
constexpr double row_sigma = 0.03;     // of a row's log ratio
constexpr double unknown_sigma = 0.2;  // of a source that nobody has measured
constexpr double unknown_weight = 0.5;
constexpr double whole_source = 20;  // rows from which on a source weighs as any other
constexpr double other_kind = 0.5;   // weight of rows of another kind

/// To nine digits: the last of a double are those of one C library's erfc and differ in a browser.
double rounded(double probability) {
  constexpr double digits = 1e9;
  return std::round(probability * digits) / digits;
}

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

}  // namespace

std::string kind_of(const Scenario& s) {
  return std::string(s.model.experts.count > 0 ? "MoE " : "dense ") + type_of(s.precision.recipe);
}

MemoryOdds::MemoryOdds(std::vector<Residual> peaks, std::vector<Residual> died,
                       std::vector<Residual> fitted) {
  const auto add = [&](std::vector<Residual>& rows, Known known) {
    for (Residual& r : rows) {
      const std::size_t kind = number_of(r.of.kind);
      if (kind == kinds_.size()) kinds_.push_back(std::move(r.of.kind));
      rows_.push_back({std::move(r.source), kind, known, r.log_ratio});
    }
  };
  add(peaks, Known::peak);
  add(died, Known::at_least);
  add(fitted, Known::at_most);
  weigh();
}

std::size_t MemoryOdds::number_of(const std::string& kind) const {
  return static_cast<std::size_t>(std::ranges::find(kinds_, kind) - kinds_.begin());
}

std::size_t MemoryOdds::sources_of_peaks() const {
  std::set<std::string_view> sources;
  for (const Row& row : rows_)
    if (row.known == Known::peak) sources.insert(row.source);
  return sources.size();
}

void MemoryOdds::weigh() {
  std::map<std::string, double> rows_of;
  for (const Row& row : rows_) rows_of[row.source] += 1.0;
  for (Row& row : rows_) row.weight = 1.0 / std::max(whole_source, rows_of[row.source]);
  // Peaks in order, and the weight of those up to each.
  std::vector<std::pair<double, double>> peaks;
  double all = unknown_weight;
  for (const Row& row : rows_)
    if (row.known == Known::peak) peaks.emplace_back(row.log_ratio, row.weight), all += row.weight;
  std::ranges::sort(peaks);
  double sum = 0;
  for (auto& [ratio, weight] : peaks) weight = sum += weight;
  for (Row& row : rows_) {
    if (row.known == Known::peak) continue;
    const auto above =
        std::ranges::upper_bound(peaks, row.log_ratio, {}, &std::pair<double, double>::first);
    const double lower = above == peaks.begin() ? 0.0 : std::prev(above)->second;
    row.below = (lower + unknown_weight * normal_below(row.log_ratio / unknown_sigma)) / all;
  }
}

MemoryOdds MemoryOdds::without(const std::string& source) const {
  MemoryOdds out = *this;
  std::erase_if(out.rows_, [&](const Row& row) { return row.source == source; });
  out.weigh();
  return out;
}

double MemoryOdds::peaks_below(std::size_t kind, double room) const {
  double below = unknown_weight * normal_below(room / unknown_sigma), all = unknown_weight;
  for (const Row& row : rows_) {
    if (row.known != Known::peak) continue;
    const double weight = row.kind == kind ? row.weight : other_kind * row.weight;
    below += weight * normal_below((room - row.log_ratio) / row_sigma);
    all += weight;
  }
  return below / all;
}

double MemoryOdds::fits(const std::string& kind_asked, Bytes needed, Bytes card) const {
  if (rows_.empty()) return needed <= card ? 1.0 : 0.0;
  const double room = std::log(static_cast<double>(std::max<std::int64_t>(1, card.value)) /
                               static_cast<double>(std::max<std::int64_t>(1, needed.value)));
  const std::size_t kind = number_of(kind_asked);
  const double peaks = peaks_below(kind, room);
  double below = 0, all = 0;
  for (const Row& row : rows_) {
    const double weight = row.kind == kind ? row.weight : other_kind * row.weight;
    double share = peaks;  // of a peak: as all of them, which are summed above
    if (row.known == Known::at_least)
      share = std::clamp((peaks - row.below) / std::max(1e-6, 1 - row.below), 0.0, 1.0);
    if (row.known == Known::at_most) share = std::min(1.0, peaks / std::max(1e-6, row.below));
    below += weight * share;
    all += weight;
  }
  return rounded((below + unknown_weight * peaks) / (all + unknown_weight));
}

Bytes MemoryOdds::most(const Scenario& scenario, double probability) const {
  const Bytes card = scenario.node.gpu.memory;
  if (rows_.empty()) return card;
  constexpr double widest = 3.0;  // as a log ratio of need and card
  constexpr int halvings = 24;
  const std::string kind = kind_of(scenario);
  const auto scaled = [&](double log) {
    return Bytes(static_cast<std::int64_t>(static_cast<double>(card.value) * std::exp(log)));
  };
  double low = -widest, high = widest;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (fits(kind, scaled(middle), card) >= probability ? low : high) = middle;
  }
  return scaled(low);
}

}  // namespace stepcast::sim
