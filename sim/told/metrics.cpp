#include "sim/told/metrics.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace stepcast::sim {
namespace {

double gibibytes(Bytes b) { return static_cast<double>(b.value) / (1 << 30); }

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double low(const std::optional<ErrorBar>& bar, double value) {
  return bar ? bar->low * value : unknown;
}
double high(const std::optional<ErrorBar>& bar, double value) {
  return bar ? bar->high * value : unknown;
}

/// Of the replay of the step's allocations; NaN where nobody has asked for one.
double of_replay(const StepReport& s, Bytes memory) {
  return s.memory.replayed() ? gibibytes(memory) : unknown;
}

/// Ends of two bars as one: errors of the step and of the failures have nothing to do with each
/// other, so that their logarithms add up like variances.
double joined(double a, double b) { return std::exp(std::hypot(std::log(a), std::log(b))); }

constexpr double giga = 1e9, tera = 1e12;

/// Of the whole run; NaN where none is asked for.
double of_run(const StepReport& s, double (*take)(const WholeRun&)) {
  return s.whole_run ? take(*s.whole_run) : unknown;
}
/// What only a run of so many tokens or days has.
double of_goal(const StepReport& s, double (*take)(const WholeRun&)) {
  return s.scenario.goal.on() ? of_run(s, take) : unknown;
}
double of_dollars(const std::optional<Band>& band, double Band::*end) {
  return band ? (*band).*end : unknown;
}

using R = const WholeRun&;

using S = const StepReport&;
using C = const CollectiveReport&;

// clang-format off
constexpr std::array all_metrics{
    Metric{"gpus", "", "GPUs",
           [](S s) { return static_cast<double>(s.scenario.gpus); },
           [](C c) { return static_cast<double>(c.scenario.gpus); }},
    Metric{"nodes", "", "nodes",
           [](S s) { return static_cast<double>(s.scenario.nodes); },
           [](C c) { return static_cast<double>(c.scenario.nodes); }},
    Metric{"step_time_s", "s", "step",
           [](S s) { return seconds(s.step_time); }},
    Metric{"step_time_low_s", "s", "at least",
           [](S s) { return low(s.step_bar, seconds(s.step_time)); }},
    Metric{"step_time_high_s", "s", "at most",
           [](S s) { return high(s.step_bar, seconds(s.step_time)); }},
    Metric{"tokens_per_s", "tokens/s", "tokens/s",
           [](S s) { return s.tokens_per_second; }},
    Metric{"tokens_per_s_per_gpu", "tokens/s", "tokens/s/GPU",
           [](S s) { return s.tokens_per_second / static_cast<double>(s.scenario.gpus); }},
    Metric{"model_tflops_per_gpu", "TFLOP/s", "TFLOP/s/GPU",
           [](S s) { return s.model_flops_per_gpu.value / tera; }},
    Metric{"mfu", "", "MFU",
           [](S s) { return s.mfu; }},
    Metric{"compute_s", "s", "compute",
           [](S s) { return seconds(s.compute); }},
    Metric{"interference_s", "s", "interference",
           [](S s) { return seconds(s.interference); }},
    Metric{"exposed_communication_s.total", "s", "exposed",
           [](S s) { return seconds(s.exposed.total()); }},
    Metric{"exposed_communication_s.tensor", "s", "exposed tensor",
           [](S s) { return seconds(s.exposed.tensor); }},
    Metric{"exposed_communication_s.pipeline", "s", "exposed pipeline",
           [](S s) { return seconds(s.exposed.pipeline); }},
    Metric{"exposed_communication_s.data", "s", "exposed data",
           [](S s) { return seconds(s.exposed.data); }},
    Metric{"exposed_communication_s.expert", "s", "exposed expert",
           [](S s) { return seconds(s.exposed.expert); }},
    Metric{"exposed_communication_s.offload", "s", "exposed offload",
           [](S s) { return seconds(s.exposed.offload); }},
    Metric{"bubble_s", "s", "bubble",
           [](S s) { return seconds(s.bubble); }},
    Metric{"wait_s", "s", "wait",
           [](S s) { return seconds(s.wait); }},
    Metric{"host_s", "s", "host",
           [](S s) { return seconds(s.host); }},
    Metric{"communication_s", "s", "communication",
           [](S s) { return seconds(s.communication); }},
    Metric{"memory_gib_per_gpu", "GiB", "memory",
           [](S s) { return gibibytes(s.memory.total()); }},
    Metric{"memory_low_gib_per_gpu", "GiB", "memory at least",
           [](S s) { return low(s.memory_bar, gibibytes(s.memory.total())); }},
    Metric{"memory_high_gib_per_gpu", "GiB", "memory at most",
           [](S s) { return high(s.memory_bar, gibibytes(s.memory.total())); }},
    Metric{"memory_allocated_gib", "GiB", "allocated",
           [](S s) { return of_replay(s, s.memory.allocated); }},
    Metric{"memory_reserved_gib", "GiB", "reserved",
           [](S s) { return of_replay(s, s.memory.reserved); }},
    Metric{"memory_process_gib", "GiB", "process",
           [](S s) { return of_replay(s, s.memory.process()); }},
    Metric{"memory_needed_gib", "GiB", "needed",
           [](S s) { return of_replay(s, s.memory.needed()); }},
    Metric{"power_w_per_gpu", "W", "power",
           [](S s) { return s.power_per_gpu.value; }},
    Metric{"energy_j", "J", "energy",
           [](S s) { return s.energy.value; }},
    Metric{"tokens_per_joule", "tokens/J", "tokens/J",
           [](S s) { return s.tokens_per_joule; }},
    Metric{"run.tokens", "tokens", "tokens of the run",
           [](S s) { return of_goal(s, [](R r) { return r.tokens.value; }); }},
    Metric{"run.tokens_low", "tokens", "at least",
           [](S s) { return of_goal(s, [](R r) { return r.tokens.low; }); }},
    Metric{"run.tokens_high", "tokens", "at most",
           [](S s) { return of_goal(s, [](R r) { return r.tokens.high; }); }},
    Metric{"run.days", "d", "days",
           [](S s) { return of_goal(s, [](R r) { return r.days.value; }); }},
    Metric{"run.days_low", "d", "at least",
           [](S s) { return of_goal(s, [](R r) { return r.days.low; }); }},
    Metric{"run.days_high", "d", "at most",
           [](S s) { return of_goal(s, [](R r) { return r.days.high; }); }},
    Metric{"run.gpu_hours", "h", "GPU hours",
           [](S s) { return of_goal(s, [](R r) { return r.gpu_hours.value; }); }},
    Metric{"run.energy_mwh", "MWh", "energy of the run",
           [](S s) { return of_goal(s, [](R r) { return r.megawatt_hours.value; }); }},
    Metric{"run.energy_low_mwh", "MWh", "at least",
           [](S s) { return of_goal(s, [](R r) { return r.megawatt_hours.low; }); }},
    Metric{"run.energy_high_mwh", "MWh", "at most",
           [](S s) { return of_goal(s, [](R r) { return r.megawatt_hours.high; }); }},
    Metric{"run.co2_t", "t", "t CO2e",
           [](S s) { return of_goal(s, [](R r) { return r.tonnes_co2.value; }); }},
    Metric{"run.co2_low_t", "t", "at least",
           [](S s) { return of_goal(s, [](R r) { return r.tonnes_co2.low; }); }},
    Metric{"run.co2_high_t", "t", "at most",
           [](S s) { return of_goal(s, [](R r) { return r.tonnes_co2.high; }); }},
    Metric{"run.usd", "USD", "USD",
           [](S s) { return of_goal(s, [](R r) { return of_dollars(r.dollars, &Band::value); }); }},
    Metric{"run.usd_low", "USD", "at least",
           [](S s) { return of_goal(s, [](R r) { return of_dollars(r.dollars, &Band::low); }); }},
    Metric{"run.usd_high", "USD", "at most",
           [](S s) { return of_goal(s, [](R r) { return of_dollars(r.dollars, &Band::high); }); }},
    Metric{"run.usd_per_gpu_hour", "USD/h", "USD/h per GPU",
           [](S s) { return of_run(s, [](R r) { return of_dollars(r.dollars_per_gpu_hour, &Band::value); }); }},
    Metric{"run.usd_per_million_tokens", "USD", "USD per M tokens",
           [](S s) { return of_run(s, [](R r) { return of_dollars(r.dollars_per_million_tokens, &Band::value); }); }},
    Metric{"run.joules_per_token", "J", "J/token",
           [](S s) { return of_run(s, [](R r) { return r.joules_per_token; }); }},
    Metric{"run.power_gpus_kw", "kW", "power of GPUs",
           [](S s) { return of_run(s, [](R r) { return r.power.gpus.value / 1e3; }); }},
    Metric{"run.power_nodes_kw", "kW", "power of nodes",
           [](S s) { return of_run(s, [](R r) { return r.power.nodes.value / 1e3; }); }},
    Metric{"run.power_network_kw", "kW", "power of network",
           [](S s) { return of_run(s, [](R r) { return r.power.network.value / 1e3; }); }},
    Metric{"goodput", "share", "goodput",
           [](S s) { return s.goodput ? s.goodput->mean : unknown; }},
    Metric{"goodput_low", "share", "goodput at least",
           [](S s) { return s.goodput ? s.goodput->low : unknown; }},
    Metric{"goodput_high", "share", "goodput at most",
           [](S s) { return s.goodput ? s.goodput->high : unknown; }},
    Metric{"tokens_per_day", "tokens", "tokens/day",
           [](S s) { return tokens_per_day(s).mean; }},
    Metric{"tokens_per_day_low", "tokens", "tokens/day at least",
           [](S s) { return tokens_per_day(s).low; }},
    Metric{"tokens_per_day_high", "tokens", "tokens/day at most",
           [](S s) { return tokens_per_day(s).high; }},
    Metric{"time_us", "us", "time", nullptr,
           [](C c) { return seconds(c.time.duration) * 1e6; }},
    Metric{"time_low_us", "us", "at least", nullptr,
           [](C c) { return low(c.bar, seconds(c.time.duration) * 1e6); }},
    Metric{"time_high_us", "us", "at most", nullptr,
           [](C c) { return high(c.bar, seconds(c.time.duration) * 1e6); }},
    Metric{"algbw_gb_per_s", "GB/s", "algbw", nullptr,
           [](C c) { return c.time.algbw.value / giga; }},
    Metric{"busbw_gb_per_s", "GB/s", "busbw", nullptr,
           [](C c) { return c.time.busbw.value / giga; }},
    Metric{"channels", "", "channels", nullptr,
           [](C c) { return static_cast<double>(c.time.channels); }},
};
// clang-format on

}  // namespace

TokensPerDay tokens_per_day(const StepReport& report) {
  if (!report.goodput) return {unknown, unknown, unknown};
  const Goodput& g = *report.goodput;
  const double mean = report.tokens_per_second * 86400.0 * g.mean;
  // A longer step is fewer tokens.
  const double slower = report.step_bar ? report.step_bar->high : 1.0;
  const double faster = report.step_bar ? 1.0 / report.step_bar->low : 1.0;
  return {mean, mean / joined(g.mean / g.low, slower), mean * joined(g.high / g.mean, faster)};
}

std::span<const Metric> metrics() { return all_metrics; }

const Metric* find_metric(std::string_view key) {
  if (key == "exposed_communication_s") key = "exposed_communication_s.total";
  for (const Metric& metric : all_metrics)
    if (metric.key == key) return &metric;
  return nullptr;
}

std::optional<double> value_of(const Metric& metric, const Answer& answer) {
  double value = unknown;
  if (const auto* step = std::get_if<StepReport>(&answer); step != nullptr && metric.of_step)
    value = metric.of_step(*step);
  if (const auto* collective = std::get_if<CollectiveReport>(&answer);
      collective != nullptr && metric.of_collective)
    value = metric.of_collective(*collective);
  if (std::isnan(value)) return std::nullopt;
  return value;
}

std::optional<double> value_of(const Metric& metric, const PointRow& row) {
  return row.unanswered() ? std::nullopt : row.number(metric.key);
}

std::string_view flop_convention() {
  return "6 N T + 12 L h s T: full attention, recompute not counted; peak is dense, 16 bit";
}

}  // namespace stepcast::sim
