#include "sim/program/interrupt.hpp"

#include <csignal>

#include "sim/program/exit_codes.hpp"

namespace stepcast::sim {
namespace {

// The static mutable values of the program: a signal handler has no other way to speak.
std::atomic<bool> stop = false;
std::atomic<int> signal_that_stopped = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  int none = 0;
  signal_that_stopped.compare_exchange_strong(none, signal);
  stop = true;
  std::signal(signal, SIG_DFL);
}

void install() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  if (std::signal(SIGHUP, on_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // nohup
}

}  // namespace

const std::atomic<bool>& stop_requested() {
  static const bool installed = (install(), true);
  static_cast<void>(installed);
  return stop;
}

int stop_code() {
  switch (signal_that_stopped) {
    case SIGTERM:
      return exit_terminated;
    case SIGHUP:
      return exit_hung_up;
    default:
      return exit_interrupted;
  }
}

}  // namespace stepcast::sim
