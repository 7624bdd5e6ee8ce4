// From measurements kept as CSV to a calibration table. One line is one measurement with its
// source; the columns are named in the header, in any order. Strict: what is not understood is an
// error with file and line. Knows no HDF5.
#pragma once

#include "sim/files/csv.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::sim {

/// Columns: gpu, kind, shape_or_bytes (or shape), dtype, value, unit, source, url_or_repo_path,
/// confidence; and as the kind needs them ranks, nodes, gpus_per_node, fabric,
/// inter_node_gbps_per_node, nccl, processes, timing (collectives), implementation (attention,
/// element-wise), data (gemm), min_bytes_moved (element-wise); implied_GB_per_s is read over.
/// Kinds and their units: gemm, grouped_gemm (groups of them, each of the shape), attention_fwd,
/// attention_bwd, attention_fwd_bwd in TFLOP/s; allreduce, allgather, reducescatter, alltoall,
/// sendrecv, broadcast, reduce in us or "GB/s busbw"; copy in GB/s; quantize and the kinds of
/// sim/kernels/kernel_names.hpp in us; launch in us; overlap in us, with kernel, collective and the
/// four times in columns of their own; power in W. Other columns (layout, cache, quality, machine)
/// are named as in calibration_columns.hpp.
CalibrationTable import_published_csv(const CsvFile& file);

}  // namespace stepcast::sim
