// Small arithmetic that many folders need. Knows no units.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "engine/check.hpp"

namespace stepcast {

/// a / b rounded up, of whole numbers: a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The middle of at least one value; of an even number of them the mean of the two in the middle.
inline double median(std::vector<double> values) {
  expects(!values.empty(), "a median of at least one value");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

/// The same, but of an even number the larger of the two, so that it is one of them.
template <class T>
T upper_median(std::vector<T> values) {
  expects(!values.empty(), "a median of at least one value");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The share of a standard normal distribution that lies below x.
inline double normal_below(double x) {
  constexpr double whole = 8.5;  // from there on a double has nothing between this and 1
  if (std::abs(x) > whole) return x > 0 ? 1.0 : 0.0;
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

/// Below which a share p of it lies, to the last digits, by halving. Draws by the million take
/// engine::normal_quantile().
inline double normal_value(double p) {
  expects(p > 0 && p < 1, "a share between none and all");
  double low = -10.0, high = 10.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (normal_below(middle) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace stepcast
