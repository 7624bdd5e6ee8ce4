// What calibration tables say of a machine besides its kernels and collectives: what a launch costs
// its host, what it draws at rest. Knows no kernel model.
#pragma once

#include <optional>

#include "sim/scenario/scenario.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::sim {

/// Host time of one kernel launch; none where this GPU's was not measured. The newest row counts.
std::optional<Duration> measured_launch(const CalibrationTable&, const topology::GpuSpec&);

/// Power at rest with a context loaded.
std::optional<Watts> measured_idle(const CalibrationTable&, const topology::GpuSpec&);

/// Puts into `scenario` what is measured of its machine: power at rest, and the launch where the
/// scenario asks for it. Throws InputError where it asks and nothing is measured.
void use_measurements(Scenario& scenario, const CalibrationTable&);

}  // namespace stepcast::sim
