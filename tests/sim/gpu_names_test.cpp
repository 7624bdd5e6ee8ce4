#include "sim/gpu_names.hpp"

#include <catch2/catch.hpp>

using stepcast::sim::kinship;
using stepcast::sim::Kinship;
using stepcast::sim::tensor_peak_of;

TEST_CASE("a measured name that says less or writes capitals is the same GPU") {
  CHECK(kinship("H100-SXM5-80GB", "h100-sxm5-80gb") == Kinship::same);
  CHECK(kinship("V100-SXM2", "v100-sxm2-32gb") == Kinship::same);
  CHECK(kinship("A100", "a100-sxm4-80gb") == Kinship::same);
}

TEST_CASE("other memory on the same chip is the same chip") {
  CHECK(kinship("A100-SXM4-40GB", "a100-sxm4-80gb") == Kinship::same_chip);
  CHECK(kinship("V100-SXM2-16GB", "v100-sxm2-32gb") == Kinship::same_chip);
}

TEST_CASE("a card and a chip of the same generation are siblings, others are foreign") {
  CHECK(kinship("H100-PCIe", "h100-sxm5-80gb") == Kinship::sibling);
  CHECK(kinship("H200-SXM-141GB", "h100-sxm5-80gb") == Kinship::sibling);
  CHECK(kinship("H800-SXM", "h200-sxm-141gb") == Kinship::sibling);
  CHECK(kinship("A100-SXM4-80GB", "h100-sxm5-80gb") == Kinship::foreign);
  CHECK(kinship("any", "h100-sxm5-80gb") == Kinship::foreign);
  CHECK(kinship("unknown", "v100-sxm2-32gb") == Kinship::foreign);
}

TEST_CASE("the peak of a published chip is known, of another not") {
  CHECK(tensor_peak_of("H200-SXM-141GB")->value == 989e12);
  CHECK(tensor_peak_of("H100-PCIe")->value == 756e12);
  CHECK_FALSE(tensor_peak_of("any"));
}
