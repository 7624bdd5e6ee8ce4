// Whether plans are ordered as they were measured, and what a wrong order costs.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/residuals.hpp"
#include "validate/published/published.hpp"

namespace stepcast::validate {

/// Over groups of plans: rows of one source, model shape, kind and number of GPUs, sequence and
/// batch; rows of one plan and software are one plan, at the median of their times. Only groups of
/// least_plans_of_group or more whose times differ.
struct Ranking {
  std::size_t groups = 0, plans = 0;
  std::optional<double>
      correlation;  // Spearman's, mean over groups; 0 where all is predicted alike
  // Measured time of the plan that is predicted fastest over the least measured, minus 1; of plans
  // that are predicted alike the mean.
  double regret = 0, worst_regret = 0;  // mean over groups, and the worst
  std::string worst;                    // a row of what was chosen there
  double regret_of_three = 0;  // of the best of the three that are predicted fastest; likewise
  // Of the pairs that were measured more than 5 % apart, the share predicted in that order; those
  // predicted alike count half.
  std::optional<double> pairs_in_order;
};

inline constexpr std::size_t least_plans_of_group = 3;

Ranking ranking_of(const std::vector<const PublishedResult*>& scored,
                   const std::function<double(const PublishedResult&)>& predicted);

/// How many pairs of plans of one group were measured in the predicted order, by source and by how
/// far apart they are predicted. Groups of two count as well; pairs measured alike do not.
std::vector<sim::PairCount> pair_counts(const std::vector<const PublishedResult*>& scored);

/// Spearman's rank correlation, ties at their mean rank; none when one side does not vary.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace stepcast::validate
