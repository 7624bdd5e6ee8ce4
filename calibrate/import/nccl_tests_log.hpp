// The text that nccl-tests prints, of any version since redop became a column and of the older ones
// without it. Understands the format alone; what the figures mean is nccl_tests.hpp's.
//
//   # nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807        (since 2.17)
//   # Collective test starting: all_reduce_perf                              (since 2.17)
//   # nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) ...
//   #  Rank  0 Group  0 Pid  62767 on  node0 device  0 [0000:19:00] NVIDIA H100 80GB HBM3
//   #       size         count      type   redop    root     time   algbw   busbw #wrong     time
//   ...
//        1048576        262144     float     sum      -1    46.23   22.68   42.53      0    45.9
//        ...
//   # Out of bounds values : 0 OK
//   # Avg bus bandwidth    : 13.1
#pragma once

#include <vector>

#include "calibrate/import/nccl_tests.hpp"
#include "calibrate/rows/text_lines.hpp"

namespace stepcast::calibrate {

/// Whether the file holds a line that only nccl-tests prints.
bool is_nccl_tests_log(const TextFile& file);

/// How Ignored names lines of NCCL itself, which nccl_debug_log.hpp may understand.
inline constexpr const char* nccl_line = "a line of NCCL's own log";

/// All runs of a file, in order. Throws InputError with file:line on a row that does not fit its
/// header, on host times of launches alone (-C), and on a run without its last lines.
std::vector<NcclTestsRun> parse_nccl_tests_log(const TextFile& file, Ignored& ignored);

}  // namespace stepcast::calibrate
