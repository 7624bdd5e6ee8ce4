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
                          const topology::Architecture& architecture);

/// The same of casts to fewer bits, by the type that they make: read once, or twice where the
/// largest value comes first, written by row and by column. For fp8: the kernels that find the
/// largest value, that cast with a known scale, and that transpose alike.
double quantize_fraction(workloads::Dtype to);

/// The fraction that measured device-memory copies (read + write) of this very GPU reach: the
/// median of the rows; none without rows.
std::optional<double> copy_fraction(const std::vector<CopyRow>& rows, const topology::GpuSpec& gpu);

}  // namespace stepcast::sim
