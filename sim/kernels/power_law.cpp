#include "sim/kernels/power_law.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/kernels/sustained.hpp"

namespace stepcast::sim {
namespace {

using topology::GpuSpec;

constexpr double context_share = 0.07;
constexpr double memory_share = 0.20;           // of TDP: HBM at full speed (sim/run/power.hpp)
constexpr double least_measured = 175.0 / 300;  // of the limit

/// The clock that the tensor peak, FLOPs of an SM in a cycle times SMs times clock, is stated at;
/// zero where it is stated lower than any clock would give (export versions).
Hertz peak_clock(const GpuSpec& gpu) {
  const double cycle = gpu.architecture.flops_per_cycle * static_cast<double>(gpu.sms);
  const double clock = cycle > 0 ? gpu.tensor_peak.value / cycle : 0;
  return Hertz(clock > 1e9 ? clock : 0);
}

double exponent(const GpuSpec& gpu) { return gpu.architecture.power_exponent; }

double idle_share(const GpuSpec& gpu) { return gpu.idle / gpu.tdp + context_share; }

/// Power under tensor load at a pace, over TDP; and the other way round.
double power_at(const GpuSpec& gpu, double pace) {
  const double floor = std::pow(least_measured, 1 / exponent(gpu));
  if (pace >= floor) return std::pow(pace, exponent(gpu));
  const double idle = idle_share(gpu);
  return idle + (least_measured - idle) * pace / floor;
}
double pace_at(const GpuSpec& gpu, double power) {
  const double floor = std::pow(least_measured, 1 / exponent(gpu));
  if (power >= least_measured) return std::pow(power, 1 / exponent(gpu));
  const double idle = idle_share(gpu);
  return floor * (power - idle) / (least_measured - idle);
}

bool capped(const GpuSpec& gpu) { return gpu.power_cap.value > 0 && gpu.power_cap < gpu.tdp; }

double pace_of_clock(const GpuSpec& gpu) {
  const Hertz peak = peak_clock(gpu);
  if (gpu.clock.value == 0 || peak.value == 0) return 1;
  return std::min(1.0, gpu.clock / (peak * sustained_share(gpu)));
}

}  // namespace

Watts context_power(const GpuSpec& gpu) { return gpu.tdp * context_share; }

Watts power_limit(const GpuSpec& gpu) { return capped(gpu) ? gpu.power_cap : gpu.tdp; }

HeldBack held_back(const GpuSpec& gpu) {
  if (gpu.tdp.value <= 0) return {};
  HeldBack out;
  if (capped(gpu)) out.pace = pace_at(gpu, gpu.power_cap / gpu.tdp);
  out.pace = std::min(out.pace, pace_of_clock(gpu));
  if (out.pace == 1) return out;
  const double idle = idle_share(gpu);
  out.tensor_power = (power_at(gpu, out.pace) - idle) / (1 - idle);
  return out;
}

ClockRange clock_range(const GpuSpec& gpu) {
  const Hertz peak = peak_clock(gpu);
  if (gpu.tdp.value <= 0 || peak.value == 0) return {};
  const double pace = held_back(gpu).pace;
  const double floor = std::pow(least_measured, 1 / exponent(gpu));
  return {peak * (sustained_share(gpu) * pace), std::min(1.0, floor / pace)};
}

void check_power(const GpuSpec& gpu, const std::string& where) {
  if (gpu.power_cap.value == 0 && gpu.clock.value == 0) return;
  if (gpu.architecture.host) throw InputError(where, "[power] of " + gpu.name, "it is about GPUs");
  const Watts least = gpu.tdp * (idle_share(gpu) + memory_share);
  if (gpu.power_cap.value > 0 && gpu.power_cap < least)
    throw InputError(where,
                     fmt::format("power cap {} of {} is less than its memory draws",
                                 to_text(gpu.power_cap), gpu.name),
                     fmt::format("{} is the least that is modelled", to_text(least)));
  if (gpu.clock.value == 0) return;
  const Hertz peak = peak_clock(gpu);
  if (peak.value == 0)
    throw InputError(where, "the peak of " + gpu.name + " does not follow from its clock",
                     "cap its power instead");
  if (gpu.clock < peak * 0.25 || gpu.clock > peak * 1.5)
    throw InputError(where, fmt::format("clock {} of {}", to_text(gpu.clock), gpu.name),
                     fmt::format("its tensor peak is stated at {}", to_text(peak)));
}

std::vector<std::string> power_warnings(const GpuSpec& gpu) {
  std::vector<std::string> out;
  const bool cap_idle = gpu.power_cap.value > 0 && !capped(gpu);
  if (cap_idle)
    out.push_back(fmt::format("power.cap has no effect here: {} draws no more than {}", gpu.name,
                              to_text(gpu.tdp)));
  const double by_clock = pace_of_clock(gpu);
  const double by_cap = capped(gpu) ? pace_at(gpu, gpu.power_cap / gpu.tdp) : 1;
  if (gpu.clock.value > 0 && by_clock >= by_cap)
    out.push_back("power.clock has no effect here: the power limit keeps clocks below it");
  if (capped(gpu) && by_clock < by_cap)
    out.push_back("power.cap has no effect here: the clock keeps power below it");
  const double pace = std::min(by_clock, by_cap);
  if (pace < 1)
    out.emplace_back(
        "[power]: how kernels on tensor cores slow down is a law of low confidence (docs/cost.md)");
  if (pace < 1 && power_at(gpu, pace) < least_measured)
    out.push_back(fmt::format("[power]: below what was measured, {} of {}'s power under load",
                              to_text(gpu.tdp * least_measured), gpu.name));
  return out;
}

}  // namespace stepcast::sim
