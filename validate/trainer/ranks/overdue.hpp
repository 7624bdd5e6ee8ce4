// A clock that ends this process when a call of MPI's or CUDA's does not return: they wait for ever
// for a peer that is gone.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/units.hpp"

namespace stepcast::validate {

/// A thread that looks twice a second whether what is under way has taken longer than `limit`; if
/// so it prints what, and ends the process with `exit_code`.
class Overdue {
 public:
  Overdue(Duration limit, int exit_code);
  ~Overdue();
  Overdue(const Overdue&) = delete;
  Overdue& operator=(const Overdue&) = delete;

  /// From now on, or anew. `allowance`: what it may take beyond the limit.
  void begin(const char* what, Duration allowance = {});
  void end() { since_ = 0; }
  /// A sign of life: what is under way, if anything is, counts from now.
  void touch();

  std::atomic<int> rank{0};  // for the message

 private:
  using Clock = std::chrono::steady_clock;
  void look();

  const Clock::duration limit_;
  const int exit_code_;
  std::atomic<const char*> what_{""};
  std::atomic<Clock::rep> since_{0};  // 0: nothing under way
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace stepcast::validate
