// The claims of tests/validate/kernel_cases.hpp about the kernels, memory and products of a real
// GPU.
#include <catch2/catch.hpp>
#include <cstdio>

#include "engine/check.hpp"
#include "tests/validate/kernel_cases.hpp"
#include "validate/trainer/device/cuda_device.hpp"
#include "validate/trainer/device/cuda_lanes.hpp"

namespace stepcast::validate {
namespace {

CudaLanes& lanes() {
  static CudaLanes lanes(0, to_duration(60.0));
  return lanes;
}

template <class Real>
std::unique_ptr<Kernels<Real>> on_gpu(std::int64_t sequence, std::int64_t head_dim) {
  return make_cuda_kernels<Real>(make_cuda_device(0, lanes()), sequence, head_dim);
}

/// Volta has no bf16: making its kernels says so.
template <class Real>
bool can_run() {
  try {
    return on_gpu<Real>(64, 128) != nullptr;
  } catch (const InputError& error) {
    std::printf("left out: %s\n", error.what());
    return false;
  }
}

TEMPLATE_TEST_CASE("the GPU's kernels do what the host's do", "", Bfloat16, Half) {
  if (!can_run<TestType>()) return;
  for (const auto& c : kernel_cases<TestType>()) {
    DYNAMIC_SECTION(c.claim) { c.check(on_gpu<TestType>); }
  }
}

TEMPLATE_TEST_CASE("what one lane wrote another reads after its wait", "", Bfloat16, Half) {
  if (!can_run<TestType>()) return;
  lanes().start();
  OnDevice<TestType> gpu(on_gpu<TestType>(8, 64));
  const Floats x = uniform(1 << 22, 1);
  Buffer<float> there = gpu.wide(x), copy = gpu->allocate_wide(x.size());
  lanes().wait(lanes().mark());
  for (int i = 0; i < 20; ++i) gpu->scale_by(there.all(), gpu.wide({0.5F}).all());
  const auto mark = lanes().mark();
  lanes().take(workloads::data_lane);
  lanes().wait(mark);
  gpu->copies_wide(std::vector<CopyPiece<float, float>>{{copy.all(), there.all()}});
  Floats wanted = x;
  for (float& value : wanted) value *= 0x1p-20F;
  CHECK((gpu.read(copy) == wanted));
  lanes().take(workloads::compute);
}

}  // namespace
}  // namespace stepcast::validate
