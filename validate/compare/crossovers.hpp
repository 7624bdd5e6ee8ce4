// Where a vendor's tuner leaves one protocol for the next, beside where the network model does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/import/crossovers.hpp"
#include "sim/told/told.hpp"

namespace stepcast::validate {

struct CrossoverResult {
  calibrate::Crossover crossover;
  std::optional<Bytes> predicted;  // none: the model never changes

  bool scored() const { return crossover.scored; }
  /// predicted / stated - 1; infinite where the model never changes.
  double error() const;
};

/// NCCL's version only decides how many channels a size gets.
std::vector<CrossoverResult> compare_crossovers(const std::vector<calibrate::Crossover>& points,
                                                const sim::Catalogue& catalogue,
                                                const std::string& nccl);

/// Median of the absolute errors of scored points; none: nothing is scored.
std::optional<double> median_error(const std::vector<CrossoverResult>& results);

/// "summary" and "rows", as text and as JSON.
sim::ToldSection told(const std::string& file, const std::vector<CrossoverResult>& results);

}  // namespace stepcast::validate
