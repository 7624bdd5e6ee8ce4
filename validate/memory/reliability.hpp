// Whether plans fit as often as their P(fits) says. Knows no forecast.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "validate/published/published.hpp"

namespace stepcast::validate {

/// A run that ran or died, and how likely it was said to fit.
struct FitFact {
  std::string source;
  double p_fits = 0;
  bool fitted = false;
};

/// Of rows that are forecast, all or those that say what became of them; P(fits) without the
/// peaks of their own source.
std::vector<FitFact> fit_facts(const std::vector<PublishedResult>& results);

/// Facts of like P(fits).
struct ReliabilityBin {
  double from = 0, to = 1;  // P(fits)
  std::size_t facts = 0;
  double forecast = 0, fitted = 0;  // shares: mean P(fits), and of those that ran
  double low = 0, high = 1;         // of the latter, 90 % (Wilson)
};
inline constexpr std::size_t least_facts = 15;

/// Neighbours with fewer than `least_facts` are one.
std::vector<ReliabilityBin> reliability(std::vector<FitFact> facts);

/// Mean square of P(fits) less what came: 0.25 of a coin, 0 at best.
double brier_score(const std::vector<FitFact>& facts);

/// Ends of a share k of n at 90 % (Wilson 1927).
struct ShareInterval {
  double low = 0, high = 1;
};
ShareInterval wilson_interval(std::size_t k, std::size_t n);

}  // namespace stepcast::validate
