// Whether error bars hold: each source in turn is left out, the bar of every row of it is made of
// the others, and its hits are counted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/confidence/interval.hpp"

namespace stepcast::validate {

struct SourceCoverage {
  std::string source;
  std::size_t rows = 0;
  double covered = 0;  // share of them
  // Median ends of their bars with every source known, as they are shown: -0.12 is 12 % less than
  // the forecast.
  double low = 0, high = 0;
};

struct KindCoverage {
  std::string kind;  // of sim::Case
  std::size_t rows = 0;
  double covered = 0;  // share of them
};

struct Coverage {
  std::vector<SourceCoverage> by_source;
  std::vector<KindCoverage> by_kind;
  double mean = 0;  // over sources
  double rows = 0;  // over rows
  SourceCoverage worst;
  double low = 0, high = 0;  // median over rows
};

/// `residuals`: of two sources or more.
Coverage coverage_of(std::span<const sim::Residual> residuals, double level,
                     const sim::Growth& growth);

/// The same of bars of memory (sim/confidence/memory_bar.hpp), of peaks of all kinds.
Coverage coverage_of_memory(std::span<const sim::Residual> peaks, double level);

/// The median error of the other rows of every source of 8 rows or more, mean over sources: as they
/// are forecast, and moved by what `runs` rows of the source itself, spread over it, had shown.
struct OwnRunsGain {
  std::size_t sources = 0;
  double before = 0, after = 0;
};
OwnRunsGain gain_of_own_runs(std::span<const sim::Residual> residuals, std::size_t runs);

}  // namespace stepcast::validate
