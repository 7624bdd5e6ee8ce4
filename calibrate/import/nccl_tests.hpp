// A run of nccl-tests as a value, however it was written down, and the rows of the calibration
// table that follow from it. The formats are nccl_tests_log.hpp and nccl_tests_json.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/rows/cluster_facts.hpp"
#include "calibrate/rows/text_lines.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::calibrate {

struct NcclTestsDevice {
  std::int64_t line = 0;
  std::int64_t rank = 0;
  std::int64_t group = 0;
  std::string process;  // of the whole job: "4711@node17"
  std::string host;
  std::string gpu;  // CUDA's name
};

/// What was printed stands for any value within `rounding` of it.
struct NcclTestsNumber {
  double value = 0, rounding = 0;
};

/// One measurement.
struct NcclTestsFigure {
  NcclTestsNumber time_us;
  NcclTestsNumber algbw, busbw;  // GB/s
  double wrong = 0;              // values that were not as expected
};

struct NcclTestsRow {
  std::int64_t line = 0;
  std::int64_t bytes = 0;
  std::string type;  // float, half, bfloat16, ...
  std::optional<NcclTestsFigure> out_of_place, in_place;
};

struct NcclTestsRun {
  std::string path;
  std::int64_t line = 0;  // where the run begins
  std::string program;    // "all_reduce_perf"; empty: not said
  std::string nccl;       // "2.20.5"; empty: not said
  std::int64_t gpus_per_process = 0;
  std::vector<NcclTestsDevice> devices;
  std::vector<NcclTestsRow> rows;

  [[noreturn]] void fail(std::int64_t at_line, const std::string& what,
                         const std::string& hint = {}) const;
};

/// Throws InputError (file:line, or the option that is needed) on wrong results, on figures that
/// contradict each other or the number of ranks, on devices that are not one whole group, and where
/// neither the run nor `facts` says what a row must say. Ranks that nothing states are solved from
/// the rows where those leave one number. Both columns become rows; times are of the host's clock.
std::vector<sim::CollectiveRow> collective_rows(const NcclTestsRun& run, const ClusterFacts& facts,
                                                Ignored& ignored);

/// Busbw over algbw as nccl-tests defines it (doc/PERFORMANCE.md): 2(n-1)/n for allreduce, (n-1)/n
/// for allgather, reducescatter and alltoall, 1 for sendrecv, broadcast and reduce.
double bus_factor(const std::string& collective, std::int64_t ranks);

}  // namespace stepcast::calibrate
