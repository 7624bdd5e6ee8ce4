#include "sim/interrupt.hpp"

#include <csignal>

namespace stepcast::sim {
namespace {

// The one static mutable value of the program: a signal handler has no other way to speak.
std::atomic<bool> stop = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  stop = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& stop_requested() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  return stop;
}

}  // namespace stepcast::sim
