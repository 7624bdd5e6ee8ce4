// Kernels that are waited for instead of run, where ranks outnumber cores: a rank then needs no
// core for its compute, only for its bytes. Knows no lengths but those it is told.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "engine/units.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::validate {

/// How long a kernel takes on this rank.
using KernelTimer = std::function<Duration(const workloads::Kernel&)>;

/// Kernels that follow each other are waited for as one: each ends where the one before ended plus
/// its length, however late the system woke this thread up.
class KernelWaits {
 public:
  explicit KernelWaits(KernelTimer length);

  void wait(const workloads::Kernel& kernel);
  /// Something else ran: the next kernel starts when it is called.
  void interrupt() { running_ = false; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::duration length_of(const workloads::Kernel& kernel);

  KernelTimer length_;
  std::map<std::string, Clock::duration> known_;
  Clock::time_point end_{};  // of the last kernel
  bool running_ = false;
};

}  // namespace stepcast::validate
