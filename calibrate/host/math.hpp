// What the host kernels' loops need so that compilers vectorise them without reordering sums on
// their own: an exponential of straight-line code, and sums in a fixed number of lanes.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace stepcast::calibrate::host {

/// e^x to 2 units in the last place, 0 below -87.3, at most e^88, NaN of NaN. Cephes expf (Moshier
/// 1992): x = n ln 2 + r, e^r by a polynomial of degree 5, times 2^n.
inline float exponential(float x) {
  constexpr float low = -87.3F, high = 88.0F;
  const bool vanishes = x < low;
  const float a = x < low ? low : (x > high ? high : x);
  constexpr float to_nearest = 12582912.0F;  // 1.5 x 2^23: adding it rounds to an integer
  const float n = (a * 1.44269504F + to_nearest) - to_nearest;
  const float r = (a - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float e_r = p * r * r + r + 1.0F;
  const float whole = n >= -126.0F ? n : 0.0F;  // NaN is no integer, and e_r NaN already
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(whole) + 127) << 23U;
  return vanishes ? 0.0F : e_r * std::bit_cast<float>(exponent);
}
inline double exponential(double x) { return std::exp(x); }

/// Sum of term(0) .. term(n - 1) in 16 lanes, then the lanes: the same on every machine.
template <class T, class Term>
T sum_in_lanes(std::size_t n, Term term) {
  constexpr std::size_t lanes = 16;
  std::array<T, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) sums[l] += term(i + l);
  for (std::size_t l = 0; i < n; ++i, ++l) sums[l] += term(i);
  T total{};
  for (const T s : sums) total += s;
  return total;
}

/// Largest of the n >= 1 values.
template <class T>
T largest_in_lanes(const T* x, std::size_t n) {
  constexpr std::size_t lanes = 16;
  std::array<T, lanes> most{};
  most.fill(x[0]);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) most[l] = x[i + l] > most[l] ? x[i + l] : most[l];
  for (; i < n; ++i) most[0] = x[i] > most[0] ? x[i] : most[0];
  T best = most[0];
  for (const T m : most) best = m > best ? m : best;
  return best;
}

}  // namespace stepcast::calibrate::host
