#include "engine/jitter.hpp"

#include <cmath>

#include "engine/check.hpp"

namespace stepcast::engine {
namespace {

constexpr double ln2 = 0.693147180559945309;

/// exp(x) by Taylor's series of x - n ln 2, |x| < 700: the C library's differs in the last digit
/// between systems.
double exact_exp(double x) {
  const double n = std::floor(x / ln2 + 0.5);
  const double r = x - n * ln2;
  double sum = 1.0;
  for (int k = 14; k > 0; --k) sum = 1.0 + sum * r / k;
  return std::ldexp(sum, static_cast<int>(n));
}

/// ln(x), x > 0, from x = m 2^e: ln m = 2 artanh((m - 1) / (m + 1)).
double exact_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // 0.5 <= m < 1
  if (m < 0.70710678118654752) m *= 2.0, --exponent;
  const double s = (m - 1.0) / (m + 1.0);
  double sum = 0.0;
  for (int k = 23; k > 0; k -= 2) sum = sum * s * s + 1.0 / k;
  return 2.0 * s * sum + exponent * ln2;
}

/// A bijection in which every bit of the input decides about every bit of the output: the finaliser
/// of splitmix64 (Steele, Lea, Flood, OOPSLA 2014, doi 10.1145/2660193.2660195).
std::uint64_t scrambled(std::uint64_t h) {
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
  return h ^ (h >> 31);
}

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;

/// In (0, 1), never an end.
double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t number) {
  const std::uint64_t start = scrambled(scrambled(seed * golden + 1) + stream * golden);
  const std::uint64_t h = scrambled(start + (number + 1) * golden);
  return (static_cast<double>(h >> 12) + 0.5) * 0x1p-52;
}

}  // namespace

// Wichura, Algorithm AS 241, Applied Statistics 37 (1988), routine PPND7.
double normal_quantile(double p) {
  expects(p > 0.0 && p < 1.0, "a probability between 0 and 1");
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
           (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0);
  }
  double r = std::sqrt(-exact_log(q < 0 ? p : 1.0 - p));
  double z = 0.0;
  if (r <= 5.0) {
    r -= 1.6;
    z = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
        ((0.12021132975 * r + 0.73700164250) * r + 1.0);
  } else {
    r -= 5.0;
    z = (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
        ((0.012258202635 * r + 0.24197894225) * r + 1.0);
  }
  return q < 0 ? -z : z;
}

JitterSource::JitterSource(const Jitter& jitter) : jitter_(jitter) {
  expects(jitter.deviation >= 0.0 && jitter.deviation <= 10.0, "a deviation between 0 and 10");
  // A lognormal variable of mean 1 has the variance exp(s^2) - 1.
  log_deviation_ = std::sqrt(exact_log(1.0 + jitter.deviation * jitter.deviation));
}

double JitterSource::factor(std::uint64_t stream, std::uint64_t number) const {
  const double u = uniform(jitter_.seed, stream, number);
  if (jitter_.distribution == Distribution::exponential)
    return 1.0 - jitter_.deviation * exact_log(u);
  const double s = log_deviation_;
  return exact_exp(s * normal_quantile(u) - s * s / 2.0);
}

}  // namespace stepcast::engine
