#include "sim/report/metrics.hpp"

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

constexpr double giga = 1e9, tera = 1e12;

using S = const StepReport&;
using C = const CollectiveReport&;

// clang-format off
constexpr std::array table{
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
           [](S s) { return gibibytes(s.figures.allocated); }},
    Metric{"memory_reserved_gib", "GiB", "reserved",
           [](S s) { return gibibytes(s.figures.reserved); }},
    Metric{"memory_process_gib", "GiB", "process",
           [](S s) { return gibibytes(s.figures.process()); }},
    Metric{"memory_needed_gib", "GiB", "needed",
           [](S s) { return gibibytes(s.figures.needed()); }},
    Metric{"power_w_per_gpu", "W", "power",
           [](S s) { return s.power_per_gpu.value; }},
    Metric{"energy_j", "J", "energy",
           [](S s) { return s.energy.value; }},
    Metric{"tokens_per_joule", "tokens/J", "tokens/J",
           [](S s) { return s.tokens_per_joule; }},
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

std::span<const Metric> metrics() { return table; }

const Metric* find_metric(std::string_view key) {
  if (key == "exposed_communication_s") key = "exposed_communication_s.total";
  for (const Metric& metric : table)
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
