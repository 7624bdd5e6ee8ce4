// Runs with a known fault: the simulator's own steps of every rank, one thing wrong in each, as the
// traces that a profiler would have written. Knows no diagnosis.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run/session.hpp"
#include "validate/trace/records/events.hpp"

namespace stepcast::validate {

enum class Fault : std::uint8_t {
  none,
  slow_gpu,         // one rank's kernels take 10 to 50 % longer
  slow_nic,         // the cables of one node are 4 to 16 times slower
  host_pause,       // one rank's host stands still in the middle of the step
  data_stall,       // every host is late at the beginning of the step
  copies,           // copies on the compute stream that are not in the program
  protocol,         // NCCL_PROTO=LL in the environment
  imbalance,        // layers of pipeline stages that are not as said
  launch_blocking,  // CUDA_LAUNCH_BLOCKING=1
};
inline constexpr int num_faults = 9;
std::string_view word_of(Fault);

struct FaultCase {
  Fault fault{};
  sim::Scenario scenario;  // as its user says it; what is wrong is not in it
  std::string base;        // which plan on how many ranks
  std::uint64_t seed = 1;
};

struct FaultyRun {
  std::vector<RankTrace> traces;     // of all ranks, a step twice
  double step = 0;                   // s
  double lengthened = 0;             // s of the step, beside the same noise without the fault
  std::optional<std::int64_t> rank;  // that alone is slow
};

/// Noise of every kernel and GPU is in all of them, drawn by the case's seed.
FaultyRun run_with_fault(const FaultCase& one, sim::Session& session);

}  // namespace stepcast::validate
