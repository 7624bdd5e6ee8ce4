#include "sim/kernels/kernel_model.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/architectures.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::KernelTime;
using sim::stretch;

namespace {

const topology::GpuSpec h100{.name = "h100-sxm5-80gb",
                             .architecture = sim::architecture("hopper"),
                             .sms = 132,
                             .tensor_peak = 989_TFLOPps,
                             .memory_bandwidth = 3350_GBps};
constexpr BytesPerSecond no_traffic{};

}  // namespace

TEST_CASE("a product of one full wave takes two while a collective holds 24 SMs") {
  const KernelTime kernel{.duration = 100_us, .tiles = 132, .tensor_fraction = 0.8};
  CHECK(stretch(kernel, h100, 0, no_traffic) == 1.0);
  CHECK(stretch(kernel, h100, 24, no_traffic) == 2.0);  // ceil(132 / 108) / ceil(132 / 132)
}

TEST_CASE("a product of many waves loses about the share of SMs that is held") {
  const KernelTime kernel{.duration = 1_ms, .tiles = 11008};
  // ceil(11008 / 116) = 95 waves instead of ceil(11008 / 132) = 84
  CHECK(stretch(kernel, h100, 16, no_traffic) == Approx(95.0 / 84.0));
}

TEST_CASE("a product that leaves the held SMs idle anyway is not slowed") {
  CHECK(stretch({.duration = 10_us, .tiles = 64}, h100, 32, no_traffic) == 1.0);
}

TEST_CASE("a kernel that streams memory slows by the bandwidth it loses") {
  const KernelTime kernel{.duration = 50_us, .memory_fraction = 0.85};
  // 335 of 3350 GB/s are gone: 1 / 0.9. The 20 SMs are none it needs.
  CHECK(stretch(kernel, h100, 20, 335_GBps) == Approx(1.0 / 0.9));
  CHECK(stretch(kernel, h100, 33, no_traffic) == 1.0);
  // 88 of 132 SMs left, 99 saturate the memory: 99 / 88
  CHECK(stretch(kernel, h100, 44, no_traffic) == Approx(99.0 / 88.0));
}

TEST_CASE("a product slows by traffic only when its own bytes no longer fit beside it") {
  const KernelTime kernel{.duration = 1_ms, .tiles = 13200, .memory_fraction = 0.3};
  CHECK(stretch(kernel, h100, 0, 670_GBps) == 1.0);                 // 0.8 left, 0.3 needed
  CHECK(stretch(kernel, h100, 0, 2680_GBps) == Approx(0.3 / 0.2));  // 0.2 left
}

TEST_CASE("a collective on copy engines takes no SMs, only the bandwidth that its bytes need") {
  const KernelTime product{.duration = 100_us, .tiles = 132, .memory_fraction = 0.3};
  const KernelTime stream{.duration = 50_us, .memory_fraction = 0.85};
  CHECK(stretch(product, h100, 0, 335_GBps) == 1.0);
  CHECK(stretch(product, h100, 1, 335_GBps) == 2.0);  // one SM held: a second wave
  CHECK(stretch(stream, h100, 0, 335_GBps) == Approx(1.0 / 0.9));
}

TEST_CASE("stretch is at least 1 and grows with the SMs held and the traffic") {
  for (const std::int64_t tiles : {0, 1, 60, 132, 133, 500, 4000})
    for (const double memory : {0.0, 0.4, 0.9}) {
      const KernelTime kernel{.duration = 20_us, .tiles = tiles, .memory_fraction = memory};
      double before = 1.0;
      for (std::int64_t ctas = 0; ctas <= 140; ++ctas) {
        const double now = stretch(kernel, h100, ctas, 100_GBps);
        REQUIRE(now >= before);
        before = now;
      }
      before = 1.0;
      for (double traffic = 0; traffic < 4e12; traffic += 1e11) {
        const double now = stretch(kernel, h100, 16, BytesPerSecond(traffic));
        REQUIRE(now >= before);
        before = now;
      }
    }
}
