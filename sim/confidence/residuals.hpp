// How far forecasts of published measurements were off, one row each, as scenarios/confidence
// holds them: written by `stepcast validate confidence --write`, read to say how far to trust a
// forecast. Knows no statistics.
#pragma once

#include <string>
#include <vector>

#include "sim/confidence/case.hpp"

namespace stepcast::sim {

struct Residual {
  std::string source;    // rows of one source err together
  std::string row;       // the id of its row, or file and line
  double log_ratio = 0;  // ln(measured / predicted): positive where the forecast was too small
  Case of;
};

/// A file without the column `kind` holds dense 16-bit models alone. Throws InputError with
/// file:line.
std::vector<Residual> read_residuals(const std::string& path);
/// A header and one line per residual; log ratios and shares to four digits, so that the file does
/// not change with the last bit of a forecast.
std::string residuals_csv(const std::vector<Residual>& residuals);

/// Pairs of measured plans of one model, GPUs and batch, by how far apart they are predicted.
struct PairCount {
  std::string source;
  double gap = 0;  // from this log ratio of the two forecasts on, up to the next one's
  double pairs = 0, in_order = 0;  // those predicted alike count half
};
std::vector<PairCount> read_pairs(const std::string& path);
std::string pairs_csv(const std::vector<PairCount>& pairs);

}  // namespace stepcast::sim
