// From a measured task to the rows of a calibration table. Knows no device.
#pragma once

#include <string>

#include "calibrate/session/measure.hpp"
#include "calibrate/session/task_list.hpp"
#include "sim/tables/calibration_table.hpp"
#include "sim/tables/gpu_identity.hpp"

namespace stepcast::calibrate {

/// What was found out about a task.
struct Measured {
  Timing timing;
  double error = 0.0;                           // relative, against float64
  double flops = 0.0;                           // of one repetition
  Bytes bytes{};                                // least traffic of one repetition
  Duration kernel_alone{}, collective_alone{};  // OverlapTask
};

/// What one session's rows have in common.
struct RowFrame {
  std::string gpu;  // in the table's words: "H100-SXM5-80GB", "host-AMD-EPYC-7B13"
  DeviceFacts facts;
  std::string fabric;               // between nodes; "" on one
  BytesPerSecond node_bandwidth{};  // of all NICs of a node
  std::string collective_timing = "event";
  sim::SharedSource source;
};

/// The table's name of the device: words joined by '-', or as published rows spell it.
std::string gpu_name(const DeviceFacts& facts, const sim::GpuIdentities& gpus);

void add_row(sim::CalibrationTable& table, const Job& job, const RowFrame& frame,
             const Measured& measured);
/// Whether the table has the row that this job would add.
bool has_row(const sim::CalibrationTable& table, const Job& job, const RowFrame& frame);

}  // namespace stepcast::calibrate
