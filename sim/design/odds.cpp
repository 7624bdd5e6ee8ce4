#include "sim/design/odds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/arithmetic.hpp"
#include "sim/study/answer.hpp"

namespace stepcast::sim {
namespace {

constexpr double price_level = 0.8;  // of cases that the range of a price holds
constexpr int price_draws = 200;     // its quantiles

/// ln(measured / forecast) as a normal variable.
struct DaysError {
  double mean = 0, deviation = 0;
};

/// Ends of a bar that holds `level` of the cases.
DaysError error_between(double low, double high, double level) {
  return {(std::log(low) + std::log(high)) / 2,
          std::log(high / low) / 2 / normal_value((1 + level) / 2)};
}

/// How likely the run takes at most `room` times the forecast days.
double share_within(const DaysError& error, double room) {
  if (room <= 0) return 0;
  if (error.deviation == 0) return std::log(room) >= error.mean ? 1 : 0;
  return normal_below((std::log(room) - error.mean) / error.deviation);
}

/// The most days that so much money lasts for; infinite: for any.
double days_for(const CashLaw& law, double usd, double factor) {
  constexpr int halvings = 60;
  double low = 0, high = 1e7;
  if (law.at(low, factor) > usd) return 0;
  if (law.at(high, factor) <= usd) return std::numeric_limits<double>::infinity();
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (law.at(middle, factor) <= usd ? low : high) = middle;
  }
  return low;
}

/// Of the step, and of what failures leave where the scenario has them.
std::optional<DaysError> days_error(const StepReport& report) {
  if (!report.step_bar) return std::nullopt;
  const ErrorBar& bar = *report.step_bar;
  DaysError out = error_between(bar.low, bar.high, bar.level);
  if (!report.goodput) return out;
  const Band g = goodput_band(report);
  const DaysError failures =
      error_between(g.value / g.high, g.value / g.low, report.goodput->level);
  return DaysError{out.mean + failures.mean, std::hypot(out.deviation, failures.deviation)};
}

}  // namespace

std::optional<double> odds_of(const DesignChoice& choice, const DesignLimits& limits) {
  const auto error = days_error(choice.report);
  const bool budget = std::isfinite(limits.usd);
  if (!error || (!budget && !std::isfinite(limits.days))) return std::nullopt;
  const double days = choice.outcome.days;
  const CashLaw& law = choice.outcome.cash.law;
  const auto within = [&](double factor) {
    const double most = budget ? days_for(law, limits.usd, factor) : limits.days;
    return share_within(*error, std::min(limits.days, most) / days);
  };
  if (!budget || law.factor.low == law.factor.high) return within(1);
  const DaysError price = error_between(law.factor.low, law.factor.high, price_level);
  double sum = 0;
  for (int i = 0; i < price_draws; ++i)
    sum += within(std::exp(price.mean + price.deviation * normal_value((i + 0.5) / price_draws)));
  return sum / price_draws;
}

double step_factor(const StepReport& report, double p) {
  const auto error = days_error(report);
  return error ? std::exp(error->mean + error->deviation * normal_value(p)) : 1.0;
}

}  // namespace stepcast::sim
