#include "sim/design/odds.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

/// ln(measured / forecast) as a normal variable.
struct StepError {
  double mean = 0, deviation = 0;
};

double normal_share_below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

std::optional<StepError> step_error(const StepReport& report) {
  if (!report.step_bar) return std::nullopt;
  const ErrorBar& bar = *report.step_bar;
  const double low = std::log(bar.low), high = std::log(bar.high);
  return StepError{(low + high) / 2, (high - low) / 2 / normal_quantile((1 + bar.level) / 2)};
}

}  // namespace

double normal_quantile(double p) {
  expects(p > 0 && p < 1, "a share of cases");
  double low = -10, high = 10;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (normal_share_below(middle) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::optional<double> odds_of(const DesignChoice& choice, const DesignLimits& limits) {
  const auto error = step_error(choice.report);
  const double room = std::min(limits.days / choice.outcome.days, limits.usd / choice.outcome.usd);
  if (!error || !std::isfinite(room)) return std::nullopt;
  if (room <= 0) return 0.0;
  if (error->deviation == 0) return std::log(room) >= error->mean ? 1.0 : 0.0;
  return normal_share_below((std::log(room) - error->mean) / error->deviation);
}

double step_factor(const StepReport& report, double p) {
  const auto error = step_error(report);
  return error ? std::exp(error->mean + error->deviation * normal_quantile(p)) : 1.0;
}

}  // namespace stepcast::sim
