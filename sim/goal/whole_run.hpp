// From one step to the run that is asked about: time, GPU hours, energy, CO2 and dollars, each with
// its band.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/goal/cluster_power.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// A figure and where it lies: at `low` to `high` by the error bar of the step, the band of the
/// goodput and the range of prices.
struct Band {
  double low = 0, value = 0, high = 0;

  friend bool operator==(const Band&, const Band&) = default;
};

/// The band of a product of independent figures: half-widths add up in squares of their logarithms,
/// shifts of the middle add up.
Band product(const Band& a, const Band& b);

/// What is known of the step.
struct StepFigures {
  double tokens = 0;  // of one step
  double step_s = 0;
  Watts gpu{}, idle_gpu{};           // of one GPU: mean over the step; idle with a context
  double bar_low = 1, bar_high = 1;  // of the measured step over step_s
};

/// Of a scenario without [run_goal] only what stands per token.
struct WholeRun {
  Band tokens, days, gpu_hours;
  Band megawatt_hours;  // of the building
  Band tonnes_co2;      // equivalent, location based; nothing embodied
  ClusterPower power;   // at work, without the building
  std::optional<Band> dollars;
  std::optional<Band> dollars_per_gpu_hour;  // electricity of owned hardware included
  std::optional<Band> dollars_per_million_tokens;
  double joules_per_token = 0;  // of the building, idle hours included
};

/// USD a year for a dollar borrowed: i / (1 - (1 + i)^-years), without interest 1 / years.
double capital_recovery(double interest, double years);

/// What one GPU costs in an hour; electricity of `watts_per_gpu` at the building's meter where it
/// is owned. None without a price.
///   rent: price; own: capex (1 + overhead) capital_recovery / (8766 h x utilisation) + opex
///   + kW x price of a kWh
std::optional<Band> dollars_per_gpu_hour(const Scenario&, Watts watts_per_gpu);

/// At the building's meter, hours without progress included.
Watts metered_power(const Scenario&, const StepFigures&, double goodput);

/// hours = tokens / (tokens a second x goodput) / 3600; a run of given days trains what it can.
/// `goodput` is the share of the wall clock that makes progress, in (0, 1].
WholeRun whole_run(const Scenario&, const StepFigures&, const Band& goodput);
WholeRun whole_run(const Scenario&, const StepFigures&, double goodput);

/// Of one step in which each GPU draws `gpu`, and nothing idles. None without a price.
std::optional<Usd> dollars_of_step(const Scenario&, Watts gpu, double step_s);

/// Prices older than 12 months at `today` ("2026-11-23"), power that no file states, what is
/// assumed.
std::vector<std::string> goal_warnings(const Scenario&, const std::string& today);

/// Months from a date ("2026", "2026-03", "2026-03-14") to a later one; a date without month or day
/// is the first of its time.
int months_between(const std::string& date, const std::string& today);

}  // namespace stepcast::sim
