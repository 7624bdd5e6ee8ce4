#include <catch2/catch.hpp>

#include "tests/validate/emulated_device.hpp"
#include "tests/validate/kernel_cases.hpp"

namespace stepcast::validate {
namespace {

TEMPLATE_TEST_CASE("the GPU's kernels, emulated, do what the host's do", "", Bfloat16, Half) {
  for (const auto& c : kernel_cases<TestType>()) DYNAMIC_SECTION(c.claim) {
      c.check(make_emulated_kernels<TestType>);
    }
}

}  // namespace
}  // namespace stepcast::validate
