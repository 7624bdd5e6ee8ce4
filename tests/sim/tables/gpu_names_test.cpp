#include "sim/tables/gpu_names.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;
using namespace stepcast::literals;
using sim::kinship;
using sim::Kinship;

namespace {

/// An H100 whose catalogue has it, its card and an H800.
const topology::GpuSpec h100{.name = "h100-sxm5-80gb",
                             .tensor_peak = FlopsPerSecond(989.4e12),
                             .relatives = {{"h100-sxm5-80gb", FlopsPerSecond(989.4e12), 450_GBps},
                                           {"h100-pcie-80gb", 756_TFLOPps, {}},
                                           {"h800-sxm5-80gb", FlopsPerSecond(989.4e12), 200_GBps}}};

}  // namespace

TEST_CASE("a measured name that says less or writes capitals is the same GPU") {
  CHECK(kinship("H100-SXM5-80GB", "h100-sxm5-80gb") == Kinship::same);
  CHECK(kinship("V100-SXM2", "v100-sxm2-32gb") == Kinship::same);
  CHECK(kinship("A100", "a100-sxm4-80gb") == Kinship::same);
}

TEST_CASE("the same chip with other memory is not the same GPU, but nearly") {
  CHECK(kinship("A100-SXM4-40GB", "a100-sxm4-80gb") == Kinship::same_chip);
  CHECK(kinship("V100-SXM2-16GB", "v100-sxm2-32gb") == Kinship::same_chip);
}

TEST_CASE("chips of one generation are siblings, others are foreign") {
  CHECK(kinship("H100-PCIe", h100) == Kinship::sibling);
  CHECK(kinship("H800-SXM", h100) == Kinship::sibling);
  CHECK(kinship("H100-SXM5-80GB", h100) == Kinship::same);
  CHECK(kinship("A100-SXM4-80GB", h100) == Kinship::foreign);
  CHECK(kinship("any", h100) == Kinship::foreign);
  CHECK(kinship("H800-SXM", "h100-sxm5-80gb") == Kinship::foreign);  // a name tells no generation
}

TEST_CASE("a relative's peak and NVLink are the catalogue's, the peak to three digits") {
  CHECK(sim::tensor_peak_of("H800-SXM", h100)->value == 989e12);
  CHECK(sim::tensor_peak_of("H100-PCIe", h100)->value == 756e12);
  CHECK(sim::tensor_peak_of("H100", h100)->value == 989e12);  // the usual form first
  CHECK_FALSE(sim::tensor_peak_of("A100", h100));
  CHECK(*sim::nvlink_of("H800-SXM", h100) == 200_GBps);
  CHECK_FALSE(sim::nvlink_of("H100-PCIe", h100));
}

TEST_CASE("another peak than the chip's is a what-if, a rounded one is not") {
  topology::GpuSpec gpu = h100;
  CHECK_FALSE(sim::altered("H100-SXM5-80GB", gpu));
  gpu.tensor_peak = 1200_TFLOPps;
  CHECK(sim::altered("H100-SXM5-80GB", gpu));
}
