// How sure it is that of two plans of one model, cluster and batch the one that is forecast faster
// is the faster one: from pairs of measured plans. Knows no scenario.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/run/residuals.hpp"

namespace stepcast::sim {

class Order {
 public:
  /// Sources of `least_pairs` or more weigh the same, whatever they have; a larger gap is never
  /// less sure (pool adjacent violators).
  explicit Order(std::span<const PairCount> pairs);
  static constexpr double least_pairs = 30;

  /// That `faster` is faster when measured, of forecasts of that time: never below 0.5, which is
  /// that of equal ones, and of all without pairs.
  double probability(double faster_s, double slower_s) const;

  /// A plan among others of its model, cluster and batch.
  struct Contender {
    double step_s = 0;
    double p_fits = 1;
  };
  /// How likely each is the fastest of those that fit, the fastest forecast first. The odds of two
  /// are those of each against the first (Luce's choice axiom, 1959); memory errs alike for all, so
  /// that what is likelier to fit does wherever another one does. The sum is that one of them fits.
  std::vector<double> best(std::span<const Contender> plans) const;

  /// "12,345 pairs of 3 sources that weigh alike, 67 % of them of HAGE"
  std::string origin() const;

 private:
  struct Step {
    double gap = 0, probability = 0.5, weight = 0;
  };
  std::vector<double> odds(std::span<const Contender> plans) const;

  std::vector<Step> steps_;  // by gap
  double pairs_ = 0, largest_ = 0;
  std::size_t sources_ = 0;
  std::string largest_source_;
};

}  // namespace stepcast::sim
