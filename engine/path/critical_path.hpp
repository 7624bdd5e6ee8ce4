// The critical path of a run's last step: a chain of kernels, transfers and host work, each
// beginning the instant the one before ends, that leads from the end of the step before to its own.
// Nothing else can shorten the step. The edges' lengths sum to the step to the picosecond.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/path/instants.hpp"

namespace stepcast::engine {

struct PathEdge {
  enum class Kind : std::uint8_t { kernel, transfer, host };
  Kind kind{};
  LaneCall call;           // kernel or transfer; of the host: what it launched last, if `launches`
  bool launches = false;   // host: up to the launch of `call`; else to the end of its epoch
  std::int64_t epoch = 0;  // host
  Time from, to;           // the first one's `from` is the step's begin, which may cut it
  Duration extra{};        // of it: interference of a kernel, sharing of a transfer's links
  Instant after;           // what it begins with
  Duration length() const { return to - from; }
};

/// A chain that comes to the path where another was later: longer by `slack`, it would be critical.
struct NearTie {
  Instant at;     // where the two come together
  Instant other;  // the last instant of the one that was not later
  Duration slack{};
};

struct CriticalPath {
  std::vector<PathEdge> edges;  // in the order of time
  std::int64_t ends = 1;        // ranks that end the step at the same instant
  std::int64_t ties = 0;        // places where another chain comes at the same instant
  std::vector<NearTie> near;    // slack at most as asked for; the smallest first
  Duration length() const;
};

/// Ensures that the length is `step`. Near ties: with a slack of at most `near`.
CriticalPath critical_path(const StepLog& log, Duration step, Duration near);

}  // namespace stepcast::engine
