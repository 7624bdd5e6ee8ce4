// Small arithmetic that many folders need. Knows no units.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

}  // namespace stepcast
