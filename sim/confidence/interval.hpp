// Conformal intervals from residuals: how much larger or smaller than a forecast the measurement is
// with a given probability. Knows no file and no scenario.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/run/residuals.hpp"

namespace stepcast::sim {

/// ln(measured / predicted) lies between `low` and `high`.
struct Interval {
  double low = 0, high = 0;
  std::string kind{};        // whose residuals: "nodes", "all", "experts and low precision"
  std::size_t sources = 0;   // that it rests on
  bool assured = true;       // false: too few sources for the level, see interval_for()
  double widened = 1;        // see widening_of()
  std::size_t own_runs = 0;  // of the user's own

  bool covers(double log_ratio) const { return low <= log_ratio && log_ratio <= high; }
};

using ResidualRefs = std::vector<const Residual*>;

/// How much larger errors of kernels become on a source that was left out, and on a GPU of which no
/// row is left.
struct Growth {
  // NOLINTNEXTLINE(google-explicit-constructor): most ask for the first alone
  Growth(double of_source = 1, double of_gpu = 1) : source(of_source), gpu(of_gpu) {}
  double source, gpu;
};

/// Sources weigh the same, and so do the rows of one: rows of one source err together, and what is
/// asked is how far a source errs that nobody has seen. The centre is the weighted median of the
/// residuals s, the ends the weighted quantile of |s - centre| at `level` (K + 1) / K away from it,
/// K sources (hierarchical exchangeability: Lee, Barber, Willett, arXiv 2306.06342; recalled,
/// 2026). Where K sources allow no such level, above K / (K + 1), it is the quantile at `level`
/// itself, and not assured. `residuals`: one or more.
Interval interval_of(const ResidualRefs& residuals, double level);

/// The residuals that a case's bar rests on: those of dense 16-bit models for one of them, for any
/// other kind those of all other kinds; where fewer than `few_sources` have measured these, all.
ResidualRefs akin(const Case& wanted, std::span<const Residual> known);
inline constexpr std::size_t few_sources = 3;  // fewer cannot tell a source from a kind
/// Whether its own side has measured so few.
bool lacks_kin(const Case& wanted, std::span<const Residual> known);

/// How far a forecast leaves what was measured, in one place. 1: its GPU's generation and its reach
/// over nodes have been measured by `few_sources` sources or more, and neither the share of its
/// time that nothing measured stands for nor the share in which the host launches is beyond the
/// largest of the residuals. `shift`: one of the former has not, or the latter are all of it;
/// between them linearly. `shift`: Growth::source. Or by Growth::gpu - 1 times the share that
/// rests on a datasheet, as a card would that nobody has measured, if that is more.
double widening_of(const Case& wanted, std::span<const Residual> known, const Growth& growth);

/// The interval for a case: of the residuals akin to it of its reach where so many sources have
/// measured that one of them may lie outside (level (K + 1) <= K - 1), else of all akin; then
/// widened. The few sources that have measured its generation, its reach or its kind may widen it
/// further, never narrow it.
/// None without residuals.
std::optional<Interval> interval_for(const Case& wanted, std::span<const Residual> known,
                                     double level, const Growth& growth);

/// The largest shares of some residuals.
struct LargestShares {
  double unmeasured = 0, host = 0;
};

/// What the interval for a case rests on, which its shares have no part in: cases of one
/// generation, reach and kind have one basis.
struct IntervalBasis {
  Interval plain{};  // as nothing widens it
  bool rare = false;
  LargestShares largest{};
  std::vector<Interval> few{};  // of few sources that have measured what the case is
};
std::optional<IntervalBasis> basis_for(const Case& wanted, std::span<const Residual> known,
                                       double level);
/// interval_for(), of a case with this basis.
Interval interval_on(const IntervalBasis& basis, const Case& wanted, const Growth& growth);

/// Spread of residuals between sources and inside of them, as standard deviations.
struct Spread {
  double between = 0, inside = 0;
};
Spread spread_of(std::span<const Residual> residuals);

/// An interval after `own` residuals of the user's own runs: they are of the very source that is
/// asked about. Its bias is estimated between the interval's centre and their median, weighted by
/// n : k with k = (inside / between)^2, and what the bias no longer leaves open narrows the radius.
Interval narrowed(const Interval& interval, const Spread& spread, const std::vector<double>& own);

}  // namespace stepcast::sim
