// Runs a System to its steady state. Two layers, one clock: ranks run ahead without a queue while
// their durations depend on nobody else; transfers on shared links, and ranks slowed by a transfer
// under way, are ordered in time. Same System, same picosecond.
#pragma once

#include "engine/system.hpp"

namespace stepcast::engine {

/// Throws Stalled when ranks wait for each other for ever, BrokenPromise on a malformed System.
RunResult run(const System& system, const RunOptions& options = {});

}  // namespace stepcast::engine
