#include "sim/kernels/bandwidth_fractions.hpp"

#include <catch2/catch.hpp>
#include "tests/sim/architectures.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using workloads::Fusion;
using workloads::KernelFamily;

TEST_CASE("every fraction lies between a tenth and one") {
  for (int family = 0; family <= static_cast<int>(KernelFamily::optimizer); ++family)
    for (const Fusion fusion : {Fusion::eager, Fusion::compiled, Fusion::fused})
      for (const auto& architecture : {sim::architecture("volta"), sim::architecture("hopper")}) {
        const double fraction =
            sim::bandwidth_fraction(static_cast<KernelFamily>(family), fusion, architecture);
        CHECK(fraction > 0.1);
        CHECK(fraction <= 1.0);
      }
}

TEST_CASE("copies use what this very GPU was measured to copy") {
  const topology::GpuSpec a100{.name = "a100-sxm4-80gb", .memory_bandwidth = 2000_GBps};
  const std::vector<sim::CopyRow> rows = {
      {.gpu = "A100-SXM4-80GB", .kind = "memory", .what = "", .rate = 1600_GBps, .source = {}},
      {.gpu = "A100-SXM4-40GB", .kind = "memory", .what = "", .rate = 1200_GBps, .source = {}},
      {.gpu = "A100-SXM4-80GB", .kind = "nvlink", .what = "", .rate = 275_GBps, .source = {}}};
  CHECK(sim::copy_fraction(rows, a100) == 0.8);
  CHECK_FALSE(sim::copy_fraction({}, a100));
}
