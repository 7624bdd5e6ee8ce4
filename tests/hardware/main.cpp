// Tests that need a GPU; without one they are skipped (77), with the reason.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdio>

#include "engine/check.hpp"
#include "tests/hardware/gpu.hpp"

int main(int argc, char** argv) {
  try {
    stepcast::hardware::gpu();
  } catch (const stepcast::InputError& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
