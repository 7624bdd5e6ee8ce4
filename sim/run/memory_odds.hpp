// How likely a plan fits: how far reported peaks lay from their forecasts, source by source, as
// scenarios/confidence/memory.csv holds them.
#pragma once

#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// "dense 16 bit", "MoE nvfp4": whether the model has experts, and the recipe's type.
std::string kind_of(const Scenario& scenario);

/// How far a reported peak lay from its forecast.
struct MemoryPeak {
  std::string source;
  double log_ratio = 0;  // ln(measured / forecast)
  std::string kind;
};

class MemoryOdds {
 public:
  /// Without evidence a plan fits or it does not.
  MemoryOdds() = default;
  /// Of a file with columns source, log_ratio (ln(measured / forecast)) and kind; none: without
  /// evidence. Throws InputError with file:line.
  explicit MemoryOdds(const std::string& path);
  explicit MemoryOdds(std::vector<MemoryPeak> peaks);

  /// Probability that a forecast of `needed` on a card with `card` turns out to fit. Sources of
  /// 20 rows or more weigh the same, smaller ones by their rows, and rows of models with other
  /// kinds of layers or types (`kind`) half; one more source, which nobody has measured and which
  /// weighs half, errs by a fifth. Each row is taken as uncertain by 3 %, so that the probability
  /// has no steps.
  double fits(const std::string& kind, Bytes needed, Bytes card) const;

  /// As if nobody had measured what this source has.
  MemoryOdds without(const std::string& source) const;

 private:
  struct Row {
    MemoryPeak peak;
    double weight = 0;
  };
  std::vector<Row> rows_;
};

}  // namespace stepcast::sim
