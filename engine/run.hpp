// Runs a System to its steady state. Two layers, one clock: ranks run ahead without a queue while
// their durations depend on nobody else; transfers on shared links, and ranks slowed by a transfer
// under way, are ordered in time. Same System, same picosecond.
#pragma once

#include "engine/system.hpp"
#include "engine/timeline.hpp"

namespace stepcast::engine {

/// Throws Stalled when ranks wait for each other for ever, BrokenPromise on a malformed System.
/// With `timeline` every kernel is an event of its own, and the last step is told there: same
/// picosecond, slower.
RunResult run(const System& system, const RunOptions& options = {},
              TimelineSink* timeline = nullptr);

}  // namespace stepcast::engine
