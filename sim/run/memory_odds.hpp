// How likely a plan fits: how far reported peaks lay from their forecasts, source by source, and
// which plans ran or died whatever their peak, as scenarios/confidence holds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/run/residuals.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// "dense 16 bit", "MoE nvfp4": whether the model has experts, and the recipe's type.
std::string kind_of(const Scenario& scenario);

class MemoryOdds {
 public:
  /// Without evidence a plan fits or it does not.
  MemoryOdds() = default;
  /// `died`: the ratio is of the card to what was forecast, and less than what was needed;
  /// `fitted`: of runs without a peak, and no less.
  explicit MemoryOdds(std::vector<Residual> peaks, std::vector<Residual> died = {},
                      std::vector<Residual> fitted = {});
  bool known() const { return !rows_.empty(); }
  /// How many sources have reported peaks.
  std::size_t sources_of_peaks() const;

  /// Probability that a forecast of `needed` on a card with `card` turns out to fit. Sources of
  /// 20 rows or more weigh the same, smaller ones by their rows, and rows of models with other
  /// kinds of layers or types (`kind`) half; one more source, which nobody has measured and which
  /// weighs half, errs by a fifth. Each row is taken as uncertain by 3 %, so that the probability
  /// has no steps. What is known of a row on one side alone lies on that side as the peaks do.
  double fits(const std::string& kind, Bytes needed, Bytes card) const;
  double fits(const Scenario& scenario, Bytes needed) const {
    return fits(kind_of(scenario), needed, scenario.node.gpu.memory);
  }
  /// The most that a plan may need to fit with that probability.
  Bytes most(const Scenario& scenario, double probability) const;

  /// As if nobody had measured what this source has.
  MemoryOdds without(const std::string& source) const;

 private:
  enum class Known : std::uint8_t { peak, at_least, at_most };
  struct Row {
    std::string source;
    std::size_t kind = 0;  // in kinds_
    Known known{};
    double log_ratio = 0;
    double weight = 0;
    double below = 0;  // of at_least and at_most: share of the peaks below the ratio
  };
  void weigh();
  std::size_t number_of(const std::string& kind) const;
  double peaks_below(std::size_t kind, double room) const;

  std::vector<std::string> kinds_;
  std::vector<Row> rows_;
};

}  // namespace stepcast::sim
