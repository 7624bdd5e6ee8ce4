#include "validate/compare/score.hpp"

#include <algorithm>
#include <cmath>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

namespace stepcast::validate {

std::optional<Score> score_of(const std::vector<double>& errors) {
  if (errors.empty()) return std::nullopt;
  const auto count = static_cast<double>(errors.size());
  std::vector<double> sizes;
  Score score{.rows = errors.size()};
  for (const double error : errors) {
    sizes.push_back(std::abs(error));
    score.mape += std::abs(error) / count;
    score.bias += error / count;
  }
  score.median_ape = median(std::move(sizes));
  return score;
}

}  // namespace stepcast::validate
