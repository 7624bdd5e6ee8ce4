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

  /// That `faster` is faster when measured, of forecasts of that time. 0.5 for equal ones, or
  /// without pairs.
  double probability(double faster_s, double slower_s) const;

  /// "12,345 pairs of 3 sources that weigh alike, 67 % of them of HAGE"
  std::string origin() const;

 private:
  struct Step {
    double gap = 0, probability = 0.5, weight = 0;
  };
  std::vector<Step> steps_;  // by gap
  double pairs_ = 0, largest_ = 0;
  std::size_t sources_ = 0;
  std::string largest_source_;
};

}  // namespace stepcast::sim
