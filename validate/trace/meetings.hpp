// Which collective kernels of several ranks are one collective: the n-th of a communicator and kind
// in a step. Its transfer takes as long as its shortest kernel, that of the rank which came last;
// what others took longer, they waited.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "validate/trace/records/events.hpp"
#include "validate/trace/steps.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::validate {

struct RankSteps {
  RankTrace trace;
  TraceSteps steps;
};

/// No rank came last: the kernel is no collective, or its peers are not known.
inline constexpr std::int32_t nobody = -1;

struct Meetings {
  std::vector<std::vector<Duration>> transfer;  // [rank][kernel]; a kernel alone: its duration
  std::vector<std::vector<std::int32_t>> last;  // [rank][kernel]: the rank's place that came last
  std::size_t met = 0, alone = 0;               // collective kernels
  bool communicators_known = true;              // false: streams stood in for them
};

/// What a communication kernel runs, by its name and the profiler's. None: it cannot be told.
std::optional<workloads::CollectiveKind> collective_of(const RankTrace& trace,
                                                       const TraceKernel& kernel);

Meetings meetings_of(const std::vector<RankSteps>& ranks);

}  // namespace stepcast::validate
