// Pauses in place of kernels.
#include "validate/trainer/model/kernel_waits.hpp"

#include <catch2/catch.hpp>
#include <thread>

#include "validate/trainer/model/operations.hpp"

namespace stepcast::validate {
namespace {

using Clock = std::chrono::steady_clock;

workloads::Kernel kernel(const std::string& name) {
  workloads::Kernel k;
  k.name = name;
  return k;
}

}  // namespace

TEST_CASE("kernels are waited for at least as long as they take, each asked for once") {
  int asked = 0;
  KernelWaits waits([&](const workloads::Kernel&) {
    ++asked;
    return to_duration(1e-3);
  });
  const auto begin = Clock::now();
  for (int i = 0; i < 10; ++i) waits.wait(kernel("gemm"));
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(10));
  CHECK(asked == 1);
}

TEST_CASE("a late wake-up is made up for by the next kernel, what runs between is not") {
  KernelWaits waits([](const workloads::Kernel&) { return to_duration(20e-3); });
  waits.wait(kernel("a"));
  const auto end_of_a = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(15));  // as if it had overslept
  waits.wait(kernel("a"));
  const auto made_up = Clock::now();
  waits.interrupt();
  std::this_thread::sleep_for(std::chrono::milliseconds(15));  // a collective
  waits.wait(kernel("a"));
  // Nothing of 20 ms is missing where something else ran between.
  CHECK(Clock::now() - made_up >= std::chrono::milliseconds(35));
  CHECK(made_up >= end_of_a + std::chrono::milliseconds(15));
}

TEST_CASE("a log that waits runs collectives, not kernels") {
  KernelWaits waits([](const workloads::Kernel&) { return Duration{}; });
  OperationLog log;
  log.wait_for_kernels(&waits);
  const auto lanes = make_host_lanes();
  lanes->start();
  int kernels = 0, collectives = 0;
  log.run(*lanes, workloads::compute, kernel("gemm"), [&] { ++kernels; });
  log.run(*lanes, workloads::compute, workloads::Collective{}, [&] { ++collectives; });
  CHECK(kernels == 0);
  CHECK(collectives == 1);
  CHECK(log.operations().size() == 2);
}

}  // namespace stepcast::validate
