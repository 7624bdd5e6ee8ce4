// Where the steps of a trace begin and end, and which kernel belongs to which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validate/trace/intervals.hpp"
#include "validate/trace/records/events.hpp"

namespace stepcast::validate {

struct TraceStep {
  std::int64_t number = 0;  // as the profiler counts
  Interval span;            // from the step's first kernel to the next step's
};

struct TraceSteps {
  std::vector<TraceStep> steps;       // whole ones, in order of time
  std::vector<std::int64_t> step_of;  // per kernel: number of its step; no_step
  std::string told_by;                // "ProfilerStep marks", ...
};

inline constexpr std::int64_t no_step = -1;

/// By the profiler's marks; where it has none, a step ends with the optimizer's last kernel before
/// the next product. The last step has no next one: it counts only if it is the only one. Throws
/// InputError where neither is there.
TraceSteps steps_of(const RankTrace& trace);

}  // namespace stepcast::validate
