// The instants of a logged run and what decides them. Each is the latest of some others, or one
// other plus the duration of an edge: a kernel, a transfer, the host thread at work. Max-plus
// algebra written out; who walks it backwards finds the critical path (critical_path.hpp) or
// derivatives (slopes.hpp).
#pragma once

#include <vector>

#include "engine/path/step_log.hpp"

namespace stepcast::engine {

struct Instant {
  enum class Kind : std::uint8_t {
    begin,      // of the run: nothing decides it
    passed,     // the lane has `call` behind it
    ready,      // `call` could begin: lane free, launched
    launched,   // the host has launched `call`
    host_done,  // the host has launched all of `epoch`
    epoch,      // the host enters `epoch`
  };
  Kind kind = Kind::begin;
  LaneCall call;           // of the host's instants: the rank
  std::int64_t epoch = 0;  // of the host's instants
  friend auto operator<=>(const Instant&, const Instant&) = default;
};

class Instants {
 public:
  explicit Instants(const StepLog& log) : log_(log) {}

  const StepLog& log() const { return log_; }
  Time time_of(const Instant&) const;
  /// Whether an edge ends there, and of which `from` is the begin; else it is the latest of its
  /// causes.
  bool ends_edge(const Instant&) const;
  /// What it waits for, in the order in which ties are settled: what the rank did itself first.
  std::vector<Instant> causes(const Instant&) const;
  /// The first of the latest.
  Instant latest(const std::vector<Instant>& causes) const;

  /// The instant at which a lane's call has passed, or the run's begin.
  Instant passed(const LaneCall& call) const;
  /// When the event that `event` names in a step happens.
  Instant recorded(std::uint32_t rank, std::uint32_t event, std::int64_t step) const;

 private:
  std::vector<Instant> causes_of_passed(const LaneCall&) const;
  std::vector<Instant> causes_of_epoch(const Instant&) const;
  Instant epoch(std::uint32_t rank, std::int64_t epoch) const;

  const StepLog& log_;
};

}  // namespace stepcast::engine
