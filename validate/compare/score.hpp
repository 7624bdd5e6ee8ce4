// How far predictions are from measurements, in a few numbers. Knows no GPU and no file.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace stepcast::validate {

/// Of relative errors e = predicted / measured - 1. All are shares: 0.12 is 12 %.
struct Score {
  std::size_t rows = 0;
  double median_ape = 0;  // absolute percentage error
  double mape = 0;        // its mean
  double bias = 0;        // mean of e, with its sign: positive predicts too long a time
};

/// None where nothing is to be scored.
std::optional<Score> score_of(const std::vector<double>& errors);

}  // namespace stepcast::validate
