#include "sim/run/measured_machine.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/run/power.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {

std::optional<Duration> measured_launch(const CalibrationTable& table,
                                        const topology::GpuSpec& gpu) {
  std::optional<Duration> launch;
  for (const LaunchRow& row : table.launches)
    if (row.what == "kernel" && kinship(row.gpu, gpu.name) == Kinship::same) launch = row.duration;
  return launch;
}

std::optional<Watts> measured_idle(const CalibrationTable& table, const topology::GpuSpec& gpu) {
  std::optional<Watts> idle;
  for (const PowerRow& row : table.powers)
    if (row.load == "idle" && kinship(row.gpu, gpu.name) == Kinship::same) idle = row.power;
  return idle;
}

void use_measurements(Scenario& scenario, const CalibrationTable& table) {
  topology::GpuSpec& gpu = scenario.node.gpu;
  // `idle` is that of an empty card; what was measured has a context.
  if (const auto idle = measured_idle(table, gpu))
    gpu.idle = Watts(std::max(0.0, (*idle - context_power(gpu)).value));
  if (!scenario.measured_launch) return;
  const auto launch = measured_launch(table, gpu);
  if (!launch)
    throw InputError(
        scenario.origin,
        "[calibration] asks for the measured launch, but no table has one of " + gpu.name,
        "measure it with stepcast-calibrate run, or leave out launch = \"measured\"");
  scenario.software.host.launch_kernel = *launch;
}

}  // namespace stepcast::sim
