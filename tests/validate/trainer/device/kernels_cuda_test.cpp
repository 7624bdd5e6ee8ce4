#include <catch2/catch.hpp>

#include "tests/validate/emulated_device.hpp"
#include "tests/validate/kernel_cases.hpp"

namespace stepcast::validate {
namespace {

TEMPLATE_TEST_CASE("the GPU's kernels, emulated, do what the host's do", "", Bfloat16, Half) {
  for (const auto& c : kernel_cases<TestType>()) {
    DYNAMIC_SECTION(c.claim) { c.check(make_emulated_kernels<TestType>); }
  }
}

TEST_CASE("a V100 trains in fp16 and refuses bf16 at once") {
  emulate(EmulatedGpu::v100);
  check_attention<Half>(make_emulated_kernels, {2, 33, 2, 1, 64, true});
  CHECK_THROWS_WITH(make_emulated_kernels<Bfloat16>(33, 64),
                    Catch::Contains("bf16 attention backward needs sm_80"));
  emulate(EmulatedGpu::h100);
  CHECK_THROWS_WITH(make_emulated_kernels<Bfloat16>(33, 96),
                    Catch::Contains("head dimensions are 64 and 128"));
}

}  // namespace
}  // namespace stepcast::validate
