// nccl-tests' figures as CSV: what rccl-tests writes with --output_format csv (ROCm/rccl-tests#93,
// read 2026-11; older ones leave `nodes` out of the header, ROCm/rocm-systems#6004, and are refused
// by their rows), and the printed table as comma-separated values, which many scripts make.
//
//   numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inplace,time,algbw,...
//   size,count,type,redop,root,time,algbw,busbw,#wrong
#pragma once

#include <optional>
#include <vector>

#include "calibrate/import/nccl_tests.hpp"
#include "sim/files/csv.hpp"

namespace stepcast::calibrate {

struct NcclTestsCsv {
  std::vector<NcclTestsRun> runs;  // one for each collective
  std::optional<std::int64_t> ranks, nodes;
};

/// Whether the header has sizes, times and bus bandwidths under nccl-tests' names.
bool is_nccl_tests_csv(const sim::CsvFile& file);

/// Throws InputError with file:line on unknown columns, on cells that are no numbers, and on ranks
/// or nodes that differ between rows.
NcclTestsCsv parse_nccl_tests_csv(const sim::CsvFile& file);

}  // namespace stepcast::calibrate
