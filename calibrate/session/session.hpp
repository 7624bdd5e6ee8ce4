// A session: every task checked, timed and written to the table; what was measured is kept whatever
// happens. Knows devices by their interface alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/session/measure.hpp"
#include "calibrate/session/task_list.hpp"
#include "sim/tables/calibration_table.hpp"
#include "sim/tables/gpu_identity.hpp"

namespace stepcast::calibrate {

struct SessionOptions {
  StoppingRule rule;
  std::uint64_t seed = 1;
  std::string out;            // the table; rows that are there already are kept, newer ones win
  bool resume = false;        // tasks that the table has are not measured again
  std::string date;           // "2026-11-21"
  std::string command;        // as it was called
  sim::GpuIdentities gpus{};  // of the catalogue, for the table's name of the device
  std::string fabric{};       // between the nodes that take part
  BytesPerSecond node_bandwidth{};
  std::string collective_timing = "wall";         // wall, event: how the device times collectives
  Duration save_every = std::chrono::seconds(1);  // what a killed session loses, and a task
  Duration power_time = std::chrono::seconds(2);  // per load; 0: no power
  Duration warm_up = std::chrono::seconds(3);     // of the device, before the first task: clocks
                                                  // oscillate that long (cutlass's guide)
};

/// A task that gave no row, and why.
struct Unmeasured {
  std::string task, why;
};

struct SessionReport {
  std::string gpu;
  std::int64_t measured = 0, known = 0;  // known: in the table before, with --resume
  std::vector<Unmeasured> unsupported, wrong, throttled, failed;
  bool interrupted = false;
  std::string saved_to;  // another file than asked for, where that could not be written
  bool lost = false;     // it could be written nowhere
  std::vector<std::string> warnings;
};

/// Told before each task and at the end.
struct SessionProgress {
  std::size_t done = 0, total = 0;
  Duration elapsed{}, left{};  // left: by the pace so far; 0 while unknown
  std::string task;
};
using ShowProgress = std::function<void(const SessionProgress&)>;

/// `stop` is looked at between tasks. Throws InputError where the table cannot be read.
SessionReport run_session(Device& device, const std::vector<Job>& jobs,
                          const SessionOptions& options, const std::atomic<bool>& stop,
                          const Clock& clock, const ShowProgress& show);

/// Counts, and every task that gave no row with its reason.
std::string to_text(const SessionReport& report);

}  // namespace stepcast::calibrate
