// Noise of kernel durations, drawn without state: a draw depends on the seed, its stream and its
// number alone, so it is the same in any order of events. Computed with + - * / and square roots
// only, which IEEE 754 rounds exactly: same picosecond with any compiler and C library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepcast::engine {

enum class Distribution : std::uint8_t {
  lognormal,    // mean 1: a kernel is as often a little faster as slower
  exponential,  // 1 + an exponential: noise that only delays, as interrupts do
};

struct Jitter {
  Distribution distribution = Distribution::lognormal;
  double deviation = 0.0;  // standard deviation of a duration, as a share of it without noise
  std::uint64_t seed = 1;

  bool on() const { return deviation > 0.0; }
  friend bool operator==(const Jitter&, const Jitter&) = default;
};

/// Factors on durations; independent for different streams and numbers.
class JitterSource {
 public:
  explicit JitterSource(const Jitter& jitter);

  /// Draw `number` of `stream`: mean 1 (lognormal) or 1 + deviation (exponential).
  double factor(std::uint64_t stream, std::uint64_t number) const;
  /// Draws number, number + 1, ... of `stream`; faster than one by one.
  void factors(std::uint64_t stream, std::uint64_t number, std::span<double> out) const;

 private:
  double draw(std::uint32_t uniform) const;
  double quantile(double p) const;

  /// The distribution's quantiles between (i) and (i + 1) / num_cells are a straight line.
  struct Cell {
    double begin, slope;
  };

  Jitter jitter_;
  std::uint64_t start_ = 0;     // the seed, scrambled
  double log_deviation_ = 0.0;  // of ln(factor), lognormal
  std::vector<Cell> cells_;
};

/// The value that a standard normal variable stays below with probability `p`, 0 < p < 1; within
/// 1e-6.
double normal_quantile(double p);

}  // namespace stepcast::engine
