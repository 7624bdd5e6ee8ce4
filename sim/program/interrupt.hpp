// Ctrl-C, SIGTERM, SIGHUP: the first one asks the program to stop after the running points, so that
// what is finished can be written; the second one of its kind ends it.
#pragma once

#include <atomic>

namespace stepcast::sim {

/// Becomes true on such a signal, from the first call on. What `nohup` ignores stays ignored.
const std::atomic<bool>& stop_requested();

/// The exit code after a stop: exit_interrupted, exit_terminated or exit_hung_up.
int stop_code();

}  // namespace stepcast::sim
