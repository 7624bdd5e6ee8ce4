// The types that the trainer computes in: float and double on a processor core, 16 bits on a GPU.
// Sums, statistics, gradients that wait and master weights are wide: fp32 beside 16 bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "workloads/plan/plan.hpp"

namespace stepcast::validate {

struct Bfloat16 {
  std::uint16_t bits = 0;
};
struct Half {
  std::uint16_t bits = 0;
};

template <class Real>
struct NumberTraits;
template <>
struct NumberTraits<float> {
  using Wide = float;
  static constexpr workloads::Dtype dtype = workloads::Dtype::fp32;
};
template <>
struct NumberTraits<double> {  // of the tests: counted as fp32
  using Wide = double;
  static constexpr workloads::Dtype dtype = workloads::Dtype::fp32;
};
template <>
struct NumberTraits<Bfloat16> {
  using Wide = float;
  static constexpr workloads::Dtype dtype = workloads::Dtype::bf16;
};
template <>
struct NumberTraits<Half> {
  using Wide = float;
  static constexpr workloads::Dtype dtype = workloads::Dtype::fp16;
};

template <class Real>
using Wide = typename NumberTraits<Real>::Wide;

/// Weights are kept twice: wide ones that the optimizer updates, and those that products read.
template <class Real>
inline constexpr bool is_mixed = sizeof(Real) != sizeof(Wide<Real>);

/// Exact.
inline float to_float(Bfloat16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16U); }
inline float to_float(Half x) {
  const std::uint32_t sign = std::uint32_t{x.bits & 0x8000U} << 16U;
  const std::uint32_t exponent = x.bits >> 10U & 31U, fraction = x.bits & 1023U;
  if (exponent == 0) {
    const float size = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -size : size;
  }
  const std::uint32_t wide = exponent == 31 ? 255U : exponent + 112U;
  return std::bit_cast<float>(sign | wide << 23U | fraction << 13U);
}

/// To the nearest, to even between two.
template <class Real>
Real rounded(float x);
template <>
inline Bfloat16 rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return {static_cast<std::uint16_t>(bits >> 16U | 64U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U)};
}
template <>
inline Half rounded(float x) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000U : 0U);
  const float size = std::fabs(x);
  if (std::isnan(x)) return {0x7fffU};
  if (size >= 65520.0F) return {static_cast<std::uint16_t>(sign | 0x7c00U)};
  const int exponent = size > 0.0F ? std::max(std::ilogb(size), -14) : -14;
  // Steps of the last place; 1024 of them carry into the exponent.
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return {static_cast<std::uint16_t>(sign + ((exponent + 14) << 10) + steps)};
}

}  // namespace stepcast::validate
