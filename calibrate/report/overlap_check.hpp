// The simulator's slow-down of a kernel beside a collective, for a pair that was measured: is the
// model of interference right on this machine? The collective is NCCL's choice by our model, on the
// catalogue's node of that GPU.
#pragma once

#include <optional>

#include "sim/run/session.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::calibrate {

/// None where the catalogue lacks the GPU, or the kernel is neither a product nor attention.
std::optional<double> modelled_stretch(const sim::OverlapRow& row, sim::Session& session);

}  // namespace stepcast::calibrate
