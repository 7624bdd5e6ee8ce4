// What a measured table of one GPU says, beside what is published of it: products, attention,
// memory-bound kernels, launches, power. Plain text; knows no device.
#pragma once

#include <string>

#include "sim/run/session.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::calibrate {

/// `published` rows count where their GPU is the measured one (sim/tables/gpu_names.hpp) and the
/// shape is equal; bf16 and fp16 are one.
std::string gpu_report(const sim::CalibrationTable& measured,
                       const sim::CalibrationTable& published, sim::Session& session);

}  // namespace stepcast::calibrate
