// NCCL's own log (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING): the table of latencies and
// bandwidths by which it chooses, and what it chose for each call. Layouts by version:
//
//   Latency/AlgBw |    Tree/    LL |   Tree/ LL128 |  Tree/Simple |    Ring/    LL | ... (to 2.14)
//
//     Algorithm   |                Tree                  |                Ring            | ...
//     Protocol    |        LL |      LL128 |    Simple   |        LL | ...
//       AllReduce | 6.8/  30.0 | ...                                            us / GB/s
//
//   8388608 Bytes -> Algo 1 proto 2 time 95.000000                                       (to 2.23)
//   AllReduce: 8388608 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}           (since)
#pragma once

#include <vector>

#include "calibrate/rows/cluster_facts.hpp"
#include "calibrate/rows/text_lines.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::calibrate {

struct NcclDebugTables {
  std::vector<sim::NcclTuningRow> tuning;
  std::vector<sim::NcclChoiceRow> choices;
};

/// Whether the file holds a table or a choice.
bool is_nccl_debug_log(const TextFile& file);

/// Throws InputError with file:line on a row that does not fit its header and on unknown names, and
/// where neither the log nor `facts` says GPU, version, ranks and nodes. A bandwidth of 0 means
/// "not offered" and gives no row.
NcclDebugTables parse_nccl_debug_log(const TextFile& file, const ClusterFacts& facts,
                                     Ignored& ignored);

}  // namespace stepcast::calibrate
