// How far forecasts of published measurements were off, one row each, as scenarios/confidence
// holds them: written by `stepcast validate confidence --write`, read to say how far to trust a
// forecast, and how likely a plan fits. Knows no statistics.
#pragma once

#include <string>
#include <vector>

namespace stepcast::sim {

/// The kind whose errors most sources have measured, and the smallest: others are told apart from
/// it.
inline constexpr const char* dense_16_bit = "dense 16 bit";

/// What kind of forecast it is, as far as the errors of published runs tell kinds apart.
struct Case {
  std::string generation;  // of the GPU: "ampere"
  std::string family;      // of a step its framework, of a collective "from 1 MiB" or "below 1 MiB"
  std::string reach;       // "one node", "nodes", "tensor over nodes"
  double host = 0;         // share of the step in which nothing is launched
  double unmeasured = 0;   // share of its time that is extrapolated or rests on a datasheet
  std::string kind = dense_16_bit;  // of model and precision: "MoE fp8", "dense mxfp8"
  double guessed = 0;  // share of its time that rests on a datasheet; not kept with a residual

  friend bool operator==(const Case&, const Case&) = default;
};

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
