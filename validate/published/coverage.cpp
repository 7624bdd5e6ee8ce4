#include "validate/published/coverage.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/confidence/memory_bar.hpp"

namespace stepcast::validate {
namespace {

using sim::Residual;
using BySource = std::map<std::string, std::vector<Residual>>;

BySource by_source(std::span<const Residual> residuals) {
  BySource out;
  for (const Residual& row : residuals) out[row.source].push_back(row);
  return out;
}

std::vector<Residual> without(std::span<const Residual> residuals, const std::string& source) {
  std::vector<Residual> out;
  for (const Residual& row : residuals)
    if (row.source != source) out.push_back(row);
  return out;
}

/// Ends of the bars of some rows.
struct Ends {
  std::vector<double> low, high;
  void add(const sim::Interval& bar) {
    low.push_back(std::expm1(bar.low));
    high.push_back(std::expm1(bar.high));
  }
};

}  // namespace

namespace {

/// `bars(source)`: what gives a row of that source its bar, without the source and with it.
template <class Bars>
Coverage coverage_by(std::span<const Residual> residuals, const Bars& bars) {
  Coverage out;
  Ends all;
  double hits = 0;
  std::map<std::string, KindCoverage> kinds;
  for (const auto& [source, rows] : by_source(residuals)) {
    const auto bar_of = bars(source);
    Ends ends;
    double covered = 0;
    for (const Residual& row : rows) {
      const auto [unseen, shown] = bar_of(row);
      covered += unseen.covers(row.log_ratio);
      KindCoverage& kind = kinds[row.of.kind];
      ++kind.rows;
      kind.covered += unseen.covers(row.log_ratio);
      ends.add(shown);
      all.add(shown);
    }
    hits += covered;
    out.by_source.push_back({source, rows.size(), covered / static_cast<double>(rows.size()),
                             median(ends.low), median(ends.high)});
  }
  for (const SourceCoverage& s : out.by_source) {
    out.mean += s.covered / static_cast<double>(out.by_source.size());
    if (out.worst.rows == 0 || s.covered < out.worst.covered) out.worst = s;
  }
  for (const auto& [name, kind] : kinds)
    out.by_kind.push_back({name, kind.rows, kind.covered / static_cast<double>(kind.rows)});
  out.rows = hits / static_cast<double>(residuals.size());
  out.low = median(all.low);
  out.high = median(all.high);
  return out;
}

}  // namespace

Coverage coverage_of(std::span<const Residual> residuals, double level, const sim::Growth& growth) {
  return coverage_by(residuals, [&](const std::string& source) {
    return [&, others = without(residuals, source)](const Residual& row) {
      const auto unseen = sim::interval_for(row.of, others, level, growth);
      const auto shown = sim::interval_for(row.of, residuals, level, growth);
      expects(unseen && shown, "residuals of two sources or more");
      return std::pair(*unseen, *shown);
    };
  });
}

Coverage coverage_of_memory(std::span<const Residual> peaks, double level) {
  const sim::MemoryOdds all({peaks.begin(), peaks.end()});
  const auto bars_of = [&](const sim::MemoryOdds& odds) {
    std::map<std::string, sim::Interval> out;
    for (const Residual& row : peaks)
      if (!out.contains(row.of.kind))
        out[row.of.kind] = sim::memory_interval(odds, row.of.kind, level);
    return out;
  };
  return coverage_by(peaks, [&, shown = bars_of(all)](const std::string& source) {
    return [&, unseen = bars_of(all.without(source))](const Residual& row) {
      return std::pair(unseen.at(row.of.kind), shown.at(row.of.kind));
    };
  });
}

OwnRunsGain gain_of_own_runs(std::span<const Residual> residuals, std::size_t runs) {
  constexpr std::size_t least_rows = 8;
  OwnRunsGain out;
  for (const auto& [source, rows] : by_source(residuals)) {
    if (rows.size() < std::max(least_rows, runs + 1)) continue;
    const std::vector<Residual> others = without(residuals, source);
    const sim::Spread spread = sim::spread_of(others);
    std::vector<double> own, before, after;
    for (std::size_t i = 0; i < runs; ++i)
      own.push_back(rows[(2 * i + 1) * rows.size() / (2 * runs)].log_ratio);
    const sim::Interval moved = sim::narrowed({}, spread, own);
    for (const Residual& row : rows) {
      before.push_back(std::abs(std::expm1(-row.log_ratio)));
      after.push_back(std::abs(std::expm1(0.5 * (moved.low + moved.high) - row.log_ratio)));
    }
    ++out.sources;
    out.before += median(before);
    out.after += median(after);
  }
  if (out.sources == 0) return out;
  out.before /= static_cast<double>(out.sources);
  out.after /= static_cast<double>(out.sources);
  return out;
}

}  // namespace stepcast::validate
