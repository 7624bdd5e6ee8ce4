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
  host_bound,       // every call of the host takes 4 to 16 times as long
  recompute,        // the forward pass runs again
  unfused,          // small kernels on the compute stream that are not in the program
  slow_attention,   // attention takes 2 to 4 times as long on all ranks
  fp32_products,    // products take 4 to 8 times as long on all ranks
  slow_kernels,     // norms and elementwise kernels take 2 to 4 times as long on all ranks
  clocks,           // products and attention take 15 to 50 % longer on all ranks
  experts,          // products of experts take 1.3 to 2 times as long on one rank
  stalls,           // of a log: every n-th step is much longer
  drift,            // of a log: steps grow evenly
};
inline constexpr int num_faults = 19;
std::string_view word_of(Fault);
/// Whether it is a log's: of steps one after the other, not inside of one.
bool is_of_log(Fault);

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

struct FaultyLog {
  std::vector<double> step_s;       // as they are printed
  double expected = 0;              // s, without noise
  double step = 0, lengthened = 0;  // s: the mean, and of it what the fault adds
};

/// A log's steps, of which each has noise.
FaultyLog log_with_fault(const FaultCase& one, sim::Session& session);

}  // namespace stepcast::validate
