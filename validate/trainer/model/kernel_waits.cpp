#include "validate/trainer/model/kernel_waits.hpp"

#include <sys/prctl.h>

#include <fmt/format.h>

#include <thread>
#include <utility>

namespace stepcast::validate {
namespace {

// Linux lets a sleeper oversleep by 50 us unless it asks for less (prctl(2), PR_SET_TIMERSLACK).
constexpr unsigned long timer_slack_ns = 1;

}  // namespace

KernelWaits::KernelWaits(KernelTimer length) : length_(std::move(length)) {
  prctl(PR_SET_TIMERSLACK, timer_slack_ns);
}

auto KernelWaits::length_of(const workloads::Kernel& kernel) -> Clock::duration {
  const std::string key =
      fmt::format("{} {} {}", kernel.name, kernel.flops.value, kernel.bytes.value);
  const auto [at, added] = known_.try_emplace(key);
  if (added) at->second = std::chrono::duration_cast<Clock::duration>(length_(kernel));
  return at->second;
}

void KernelWaits::wait(const workloads::Kernel& kernel) {
  end_ = (running_ ? end_ : Clock::now()) + length_of(kernel);
  running_ = true;
  std::this_thread::sleep_until(end_);
}

}  // namespace stepcast::validate
