#include "calibrate/device/nvml.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;
using namespace stepcast::calibrate;

TEST_CASE("NVML's bits: a power limit is no fault of the hardware") {
  CHECK(reasons_of(0x4).power_cap);
  CHECK_FALSE(reasons_of(0x4).hardware);
  for (const std::uint64_t bit : {0x8U, 0x40U, 0x80U}) CHECK(reasons_of(bit).hardware);
  for (const std::uint64_t bit : {0x0U, 0x1U, 0x2U, 0x10U, 0x100U}) {
    CHECK_FALSE(reasons_of(bit).hardware);
    CHECK_FALSE(reasons_of(bit).power_cap);
  }
}

TEST_CASE("times count unless the clock is low for another reason than power") {
  CHECK_FALSE(throttled(1980, 1980, {}));
  CHECK_FALSE(throttled(1486, 1980, {}));  // 75.05 %
  CHECK(throttled(1484, 1980, {}));        // 74.95 %
  CHECK_FALSE(throttled(1300, 1980, {.power_cap = true}));
  CHECK(throttled(1980, 1980, {.hardware = true}));
  CHECK(throttled(1980, 1980, {.power_cap = true, .hardware = true}));
}
