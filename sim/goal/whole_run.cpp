#include "sim/goal/whole_run.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "engine/check.hpp"
#include "sim/goal/band.hpp"
#include "sim/scenario/goal_file.hpp"

namespace stepcast::sim {
namespace {

constexpr double hours_a_year = 8766, seconds_an_hour = 3600, hours_a_day = 24;
constexpr int stale_months = 12;

Band inverse(const Band& band) { return {1 / band.high, 1 / band.value, 1 / band.low}; }
Band exactly(double value) { return {value, value, value}; }

double tokens_asked(const Scenario& s) {
  if (s.goal.tokens.value > 0) return s.goal.tokens.value;
  return s.goal.samples.value * static_cast<double>(s.batch.sequence);
}

bool all_positive(const Band& band) { return band.low > 0 && band.value > 0 && band.high > 0; }

}  // namespace

Band product(const Band& a, const Band& b) {
  const double value = a.value * b.value;
  if (!all_positive(a) || !all_positive(b)) return {a.low * b.low, value, a.high * b.high};
  const auto middle = [](const Band& x) {
    return (std::log(x.low / x.value) + std::log(x.high / x.value)) / 2;
  };
  const auto half = [](const Band& x) { return std::log(x.high / x.low) / 2; };
  const double shift = middle(a) + middle(b), width = std::hypot(half(a), half(b));
  return {value * std::exp(shift - width), value, value * std::exp(shift + width)};
}

double capital_recovery(double interest, double years) {
  expects(years > 0, "some time to pay back in");
  if (interest == 0) return 1 / years;
  return interest / (1 - std::pow(1 + interest, -years));
}

std::optional<Band> dollars_per_gpu_hour(const Scenario& s, Watts watts_per_gpu) {
  const Cost& cost = s.cost;
  if (!cost.own) {
    if (cost.price.value == 0) return std::nullopt;
    return Band{cost.price_low.value, cost.price.value, cost.price_high.value};
  }
  if (cost.capex.value == 0) return std::nullopt;
  const double share = (1 + cost.overhead) * capital_recovery(cost.interest, cost.years) /
                       (hours_a_year * cost.utilisation);
  const double running = cost.opex.value + watts_per_gpu.value / 1000 * cost.electricity.value;
  const auto with = [&](Usd capex) { return capex.value * share + running; };
  return Band{with(cost.capex_low), with(cost.capex), with(cost.capex_high)};
}

Watts metered_power(const Scenario& s, const StepFigures& step, double goodput) {
  expects(goodput > 0 && goodput <= 1, "a share of the wall clock");
  const Watts work = power_at_work(s, step.gpu).total();
  const Watts rest = power_at_rest(s, step.idle_gpu).total();
  return (work * goodput + rest * (1 - goodput)) * s.site.pue;
}

std::optional<Usd> dollars_of_step(const Scenario& s, Watts gpu, double step_s) {
  // A step of one token: what a token costs is what the step costs.
  const StepFigures step{.tokens = 1, .step_s = step_s, .gpu = gpu, .idle_gpu = gpu};
  const auto dollars = whole_run(s, step, 1.0).dollars_per_million_tokens;
  if (!dollars) return std::nullopt;
  return Usd(dollars->value / 1e6);
}

WholeRun whole_run(const Scenario& s, const StepFigures& step, double goodput) {
  return whole_run(s, step, exactly(goodput));
}

WholeRun whole_run(const Scenario& s, const StepFigures& step, const Band& goodput) {
  const auto gpus = static_cast<double>(s.gpus);
  const Watts metered = metered_power(s, step, goodput.value);
  const Band step_s{step.step_s * step.bar_low, step.step_s, step.step_s * step.bar_high};
  // `with_goodput`: what a figure is at a goodput, over what it is at the mean one; it falls with
  // it.
  const auto spread = [&](const Band& of_step, const auto& with_goodput) {
    if (goodput.low == goodput.high) return of_step;
    const double mean = with_goodput(goodput.value);
    return product(of_step,
                   {with_goodput(goodput.high) / mean, 1, with_goodput(goodput.low) / mean});
  };
  const Band hours_of_step = scaled(step_s, 1 / step.tokens / goodput.value / seconds_an_hour);
  const Band hours_a_token = spread(hours_of_step, [](double g) { return 1 / g; });

  WholeRun out;
  out.power = power_at_work(s, step.gpu);
  out.joules_per_token = metered.value * hours_a_token.value * seconds_an_hour;
  const auto price = dollars_per_gpu_hour(s, metered * (1 / gpus));
  out.dollars_per_gpu_hour = price;
  if (price) out.dollars_per_million_tokens = product(scaled(hours_a_token, gpus * 1e6), *price);
  if (!s.goal.on()) return out;

  const bool by_days = s.goal.days > 0;
  const auto of_goal = [&](const Band& a_token) {
    return by_days ? exactly(s.goal.days * hours_a_day) : scaled(a_token, tokens_asked(s));
  };
  const Band hours = of_goal(hours_a_token);
  out.tokens = by_days ? scaled(inverse(hours_a_token), hours.value) : exactly(tokens_asked(s));
  out.days = scaled(hours, 1 / hours_a_day);
  out.gpu_hours = scaled(hours, gpus);
  // What is not training draws less.
  const Band drawing = by_days ? hours : spread(of_goal(hours_of_step), [&](double g) {
    return metered_power(s, step, g).value / g;
  });
  out.megawatt_hours = scaled(drawing, metered.value / 1e6);
  out.tonnes_co2 = scaled(out.megawatt_hours, s.site.carbon.value / 1e3);
  if (price) out.dollars = product(out.gpu_hours, *price);
  return out;
}

int months_between(const std::string& date, const std::string& today) {
  const auto number = [](const std::string& text, std::size_t at, std::size_t length, int usual) {
    return text.size() < at + length ? usual : std::atoi(text.substr(at, length).c_str());
  };
  const auto months = [&](const std::string& text) {
    return 12 * number(text, 0, 4, 0) + number(text, 5, 2, 1);
  };
  const int whole = months(today) - months(date);
  return number(today, 8, 2, 1) < number(date, 8, 2, 1) ? whole - 1 : whole;
}

std::vector<std::string> goal_warnings(const Scenario& s, const std::string& today) {
  std::vector<std::string> out;
  if (!asks_for_costs(s)) return out;
  const Cost& cost = s.cost;
  const std::string& now = s.goal.today.empty() ? today : s.goal.today;
  const bool priced = cost.own ? cost.capex.value > 0 : cost.price.value > 0;
  if (!priced)
    out.push_back(fmt::format("no list has a price of {}: --price \"2.5 USD/h\" gives dollars",
                              s.node.gpu.name));
  const int age = cost.date.empty() ? 0 : months_between(cost.date, now);
  if (priced && age > stale_months)
    out.push_back(
        fmt::format("the price is of {}, {} months old: {}", cost.date, age, cost.source));
  if (s.power_count == PowerCount::tdp) return out;
  if (s.node.max_power.value == 0)
    out.push_back(
        fmt::format("no file states the power of {}: beside its GPUs it is taken as half "
                    "of their TDP",
                    s.node.name));
  const bool unknown = s.fabric.switch_power.value == 0 || s.fabric.transceiver_power.value == 0;
  if (s.nodes > 1 && unknown)
    out.push_back(
        fmt::format("the power of fabric {} is known in part only: state switch_power "
                    "and transceiver_power",
                    s.fabric.name));
  return out;
}

}  // namespace stepcast::sim
