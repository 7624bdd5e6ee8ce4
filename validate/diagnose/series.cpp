#include "validate/diagnose/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/arithmetic.hpp"

namespace stepcast::validate {
namespace {

constexpr std::size_t fewest_steps = 8;
constexpr double sticks_out = 1.3;  // times the usual step
constexpr double grows = 0.04;      // of it: less is what logs wander by

struct NumberedStep {
  std::int64_t number = 0;
  double seconds = 0;
};

std::vector<NumberedStep> steps_in(const StepLog& log, double tokens) {
  std::vector<NumberedStep> out;
  const bool times = !log.step_s.empty();
  const std::vector<double>& all = times ? log.step_s : log.tokens_per_second_per_gpu;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int64_t printed = i < log.numbers.size() ? log.numbers[i] : 0;
    const auto number = printed > 0 ? printed : static_cast<std::int64_t>(i + 1);
    out.push_back({number, times ? all[i] : tokens / all[i]});
  }
  return out;
}

/// Without the first tenth, at least one, and the first step behind each restart.
std::vector<NumberedStep> steady(const std::vector<NumberedStep>& all, StepSeries& out) {
  std::vector<NumberedStep> kept;
  const std::size_t warm_up = std::max<std::size_t>(1, all.size() / 10);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool restarted = i > 0 && all[i].number < all[i - 1].number;
    if (restarted) ++out.restarts;
    if (i >= warm_up && !restarted)
      kept.push_back(all[i]);
    else
      ++out.left_out;
  }
  return kept;
}

double usual_of(const std::vector<NumberedStep>& steps, std::size_t first, std::size_t last) {
  std::vector<double> all;
  for (std::size_t i = first; i < last; ++i) all.push_back(steps[i].seconds);
  return median(std::move(all));
}

/// The distance that most of the long steps keep.
std::optional<std::int64_t> period_of(const std::vector<std::int64_t>& numbers) {
  if (numbers.size() < 3) return std::nullopt;
  std::map<std::int64_t, std::size_t> distances;
  for (std::size_t i = 1; i < numbers.size(); ++i) ++distances[numbers[i] - numbers[i - 1]];
  const auto most =
      std::ranges::max_element(distances, {}, [](const auto& distance) { return distance.second; });
  if (most->first < 2 || 3 * most->second < 2 * (numbers.size() - 1)) return std::nullopt;
  return most->first;
}

}  // namespace

std::optional<StepSeries> series_of(const StepLog& log, double tokens) {
  const std::vector<NumberedStep> all = steps_in(log, tokens);
  if (all.size() < fewest_steps) return std::nullopt;
  StepSeries out;
  const std::vector<NumberedStep> steps = steady(all, out);
  out.counted = steps.size();
  if (steps.size() < fewest_steps / 2) return std::nullopt;
  out.usual = usual_of(steps, 0, steps.size());
  std::vector<std::int64_t> longer;
  double others = 0, sum = 0;
  for (const NumberedStep& step : steps) {
    sum += step.seconds;
    if (step.seconds > sticks_out * out.usual)
      longer.push_back(step.number);
    else
      others += step.seconds;
  }
  out.longer = longer.size();
  out.mean = sum / static_cast<double>(steps.size());
  out.stalls = out.mean - others / static_cast<double>(steps.size() - longer.size());
  out.period = period_of(longer);
  const std::size_t quarter = steps.size() / 4;
  if (quarter >= 2) {
    const double first = usual_of(steps, 0, quarter);
    const double last = usual_of(steps, steps.size() - quarter, steps.size());
    if (std::abs(last / first - 1) > grows) out.growth = last - first;
  }
  return out;
}

std::vector<Cause> causes_of(const StepSeries& s) {
  std::vector<Cause> out;
  if (s.longer > 0)
    out.push_back({CauseKind::stalls, s.stalls,
                   fmt::format("{} of {} steps take more than {:.1f} times the usual {}{}",
                               s.longer, s.counted, sticks_out, milliseconds(s.usual),
                               s.period ? fmt::format(", one every {} steps", *s.period) : ""),
                   Surety::sure});
  // Of steps that grow evenly the quarters' middles lie three quarters of the growth apart, of
  // which the mean has half.
  if (s.growth > 0)
    out.push_back({CauseKind::drift, s.growth * 2 / 3,
                   fmt::format("the last quarter's usual step is {} longer than the first's",
                               milliseconds(s.growth)),
                   Surety::likely});
  return out;
}

std::vector<std::string> notes_of(const StepSeries& s) {
  std::vector<std::string> out;
  out.push_back(
      fmt::format("Series: the mean of {} printed steps is {}, the usual one {}; {} left "
                  "out as warm-up.",
                  s.counted, milliseconds(s.mean), milliseconds(s.usual), s.left_out));
  if (s.restarts > 0)
    out.push_back(fmt::format("The numbers of the steps begin anew {} time{}: restarts.",
                              s.restarts, s.restarts == 1 ? "" : "s"));
  return out;
}

}  // namespace stepcast::validate
