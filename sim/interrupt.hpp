// Ctrl-C: the first one asks the program to stop after the running points, so that what is finished
// can be written; the second one ends it.
#pragma once

#include <atomic>

namespace stepcast::sim {

/// Becomes true on SIGINT or SIGTERM, from the first call on.
const std::atomic<bool>& stop_requested();

}  // namespace stepcast::sim
