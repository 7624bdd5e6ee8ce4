// Tests that need a GPU: without one they are skipped (77), with the reason.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>

#include "engine/check.hpp"
#include "tests/hardware/gpu.hpp"

namespace {

struct NeedsGpu : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testRunStarting(const Catch::TestRunInfo&) override {
    try {
      stepcast::hardware::gpu();
    } catch (const stepcast::InputError& error) {
      std::printf("skipped: %s\n", error.what());
      std::exit(77);
    }
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(NeedsGpu)
