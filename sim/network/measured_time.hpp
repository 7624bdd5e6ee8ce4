// What the way of measuring a collective adds to the time that the GPUs need for it, and how to
// take it away again.
#pragma once

#include <optional>

#include "sim/network/constants.hpp"
#include "sim/tables/calibration_table.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// The collective of a row by nccl-tests' name; none that the model does not know.
std::optional<workloads::CollectiveKind> collective_kind(const CollectiveRow& row);

/// Whether the library was told how to run it. A protocol with its evidence in brackets, "ll (by
/// plateau)", is what the source infers from its own times: nobody forced it.
bool was_forced(const CollectiveRow& row);

/// The time that this row's benchmark would report for a collective that takes `device` on its
/// GPUs: wall clock over back-to-back calls, or a profiler's kernel time. One process that launches
/// for all GPUs of a node is slower, and bounds short collectives by its launches.
Duration as_measured(Duration device, const CollectiveRow& row,
                     const MeasurementConstants& constants);

/// The other way round; none where the row shows launches rather than the collective.
std::optional<Duration> device_time(const CollectiveRow& row,
                                    const MeasurementConstants& constants);

/// Reading error that a row's source states for its bus bandwidth ("digitised +-3 GB/s"); 0: none.
BytesPerSecond reading_error(const CollectiveRow& row);

}  // namespace stepcast::sim
