// A role's step call by call, repeats written out: which lane, which host epoch, launched how long
// after the epoch's begin, which call records an event. What a run does with them it does not know.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/system.hpp"

namespace stepcast::engine {

struct StepCall {
  Instruction what;         // events as in the unrolled program
  std::uint32_t epoch = 0;  // host_waits passed before
  std::uint32_t place = 0;  // among the calls of its lane; of a host_wait: none
  Duration launch{};        // after the begin of its epoch
};

struct StepCalls {
  std::vector<StepCall> calls;                    // in the host's order
  std::vector<std::vector<std::uint32_t>> lanes;  // [lane]: its calls, in order
  std::vector<std::uint32_t> recorder;            // by event: the call
  std::vector<std::uint32_t> host_waits;          // calls; the n-th ends epoch n
  Duration last_epoch{};                          // host time from the last wait to the step's end
  bool marked = false;
  // Where a steady run enters: behind the mark, by lane, and the host's epoch there.
  std::vector<std::uint32_t> entry;
  std::uint32_t entry_epoch = 0;

  std::uint32_t num_epochs() const { return static_cast<std::uint32_t>(host_waits.size()) + 1; }
  /// The compute lane's call with which a step ends: its mark, or its last.
  std::uint32_t last_place() const;
};

StepCalls step_calls(const System& system, std::uint32_t role);

}  // namespace stepcast::engine
