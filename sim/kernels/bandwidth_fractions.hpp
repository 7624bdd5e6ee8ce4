// Which share of the HBM bandwidth a kernel that only moves bytes achieves, by kind and by who
// wrote it. Knows no GPU but by name.
#pragma once

#include <optional>

#include "sim/tables/calibration_table.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// Fraction of GpuSpec::memory_bandwidth, counted over the bytes a kernel must move, for tensors of
/// 64 MiB and more.
double bandwidth_fraction(workloads::KernelFamily family, workloads::Fusion fusion,
                          topology::Architecture architecture);

/// The fraction that measured device-memory copies (read + write) of this very GPU reach: the
/// median of the rows; none without rows.
std::optional<double> copy_fraction(const std::vector<CopyRow>& rows, const topology::GpuSpec& gpu);

}  // namespace stepcast::sim
