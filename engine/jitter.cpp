#include "engine/jitter.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::engine {
namespace {

constexpr double ln2 = 0.693147180559945309;

/// exp(x) by Taylor's series of x - n ln 2, within 1e-9, |x| < 700: the C library's differs in the
/// last digit between systems.
double portable_exp(double x) {
  constexpr double inverse[] = {0,      1,      1. / 2, 1. / 3, 1. / 4,
                                1. / 5, 1. / 6, 1. / 7, 1. / 8, 1. / 9};
  const double n = std::abs(x) < ln2 / 2 ? 0.0 : std::floor(x / ln2 + 0.5);
  const double r = x - n * ln2;
  double sum = 1.0;
  for (int k = 9; k > 0; --k) sum = 1.0 + sum * (r * inverse[k]);
  return n == 0.0 ? sum : std::ldexp(sum, static_cast<int>(n));
}

/// ln(x), x > 0, within 1e-9, from x = m 2^e: ln m = 2 artanh((m - 1) / (m + 1)).
double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // 0.5 <= m < 1
  if (m < 0.70710678118654752) m *= 2.0, --exponent;
  const double s = (m - 1.0) / (m + 1.0);
  const double t = s * s;  // < 0.03
  const double sum = 1 + t * (1. / 3 + t * (1. / 5 + t * (1. / 7 + t * (1. / 9 + t / 11))));
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

// Quantiles come from a table of straight lines, but for the tails, where they are curved most.
constexpr std::uint32_t cell_shift = 22;
constexpr std::uint32_t num_cells = 1U << (32 - cell_shift);
constexpr std::uint32_t tail_cells = 8;  // at each end: 1.6 % of all draws

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
  double r = std::sqrt(-portable_log(q < 0 ? p : 1.0 - p));
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
  start_ = scrambled(jitter.seed * golden + 1);
  // A lognormal variable of mean 1 has the variance exp(s^2) - 1.
  log_deviation_ = std::sqrt(portable_log(1.0 + jitter.deviation * jitter.deviation));
  if (!jitter.on()) return;
  cells_.resize(num_cells);
  for (std::uint32_t c = tail_cells; c < num_cells - tail_cells; ++c) {
    const double begin = quantile(static_cast<double>(c) / num_cells);
    cells_[c] = {begin, quantile(static_cast<double>(c + 1) / num_cells) - begin};
  }
}

/// The factor that a draw stays below with probability p.
double JitterSource::quantile(double p) const {
  if (jitter_.distribution == Distribution::exponential)
    return 1.0 - jitter_.deviation * portable_log(1.0 - p);
  const double s = log_deviation_;
  return portable_exp(s * normal_quantile(p) - s * s / 2.0);
}

inline double JitterSource::draw(std::uint32_t uniform) const {
  const std::uint32_t cell = uniform >> cell_shift;
  if (cell - tail_cells < num_cells - 2 * tail_cells) {
    const std::uint32_t within = uniform & ((1U << cell_shift) - 1);
    return cells_[cell].begin + cells_[cell].slope * ((within + 0.5) / (1U << cell_shift));
  }
  return quantile((uniform + 0.5) * 0x1p-32);  // in (0, 1), never an end
}

double JitterSource::factor(std::uint64_t stream, std::uint64_t number) const {
  double out = 1.0;
  factors(stream, number, {&out, 1});
  return out;
}

void JitterSource::factors(std::uint64_t stream, std::uint64_t number,
                           std::span<double> out) const {
  if (!jitter_.on()) {
    std::ranges::fill(out, 1.0);
    return;
  }
  // One hash is two draws: its lower half the even number, its upper half the odd one.
  std::uint64_t state = scrambled(start_ + stream * golden) + (number / 2 + 1) * golden;
  auto at = out.begin();
  if ((number & 1U) != 0 && at != out.end()) {
    *at++ = draw(static_cast<std::uint32_t>(scrambled(state) >> 32));
    state += golden;
  }
  for (; out.end() - at >= 2; at += 2, state += golden) {
    const std::uint64_t h = scrambled(state);
    at[0] = draw(static_cast<std::uint32_t>(h));
    at[1] = draw(static_cast<std::uint32_t>(h >> 32));
  }
  if (at != out.end()) *at = draw(static_cast<std::uint32_t>(scrambled(state)));
}

}  // namespace stepcast::engine
