#include "workloads/step/optimizer_calls.hpp"

#include <catch2/catch.hpp>

#include "tests/workloads/step_reading.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

std::int64_t calls_of(const StepProgram& step, const std::string& prefix) {
  std::int64_t count = 0;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == engine::Op::work && step.kernels[i.arg].name.starts_with(prefix)) ++count;
  return count;
}

}  // namespace

TEST_CASE(
    "LAMB moves 50 bytes a parameter, its 16-bit copy among them, and the norm of the gradients "
    "4") {
  Software software = fused();
  software.optimizer.kernel = OptimizerKernel::lamb;
  const Precision precision{.compute = Dtype::fp16, .gradient_reduce = Dtype::fp16};
  const TransformerShape shape = bert_large();
  const StepProgram step = step_of(shape, plan_of(DataParallel::ddp, 8), two, software, precision);
  const auto p = static_cast<double>(parameters(shape));
  CHECK(static_cast<double>(bytes_of_kernels(step, "lamb.")) == Approx(50 * p).epsilon(1e-6));
  CHECK(static_cast<double>(bytes_of_kernels(step, "gradients.norm")) ==
        Approx(4 * p).epsilon(1e-6));
  CHECK(bytes_of_kernels(step, "gradients.scale") == 0);
  CHECK(bytes_of_kernels(step, "adamw.") == 0);
}

TEST_CASE("an optimizer of single tensors launches nine kernels for each") {
  Software software = eager();
  software.optimizer.kernel = OptimizerKernel::per_tensor;
  const TransformerShape shape = gpt(4, 1024, 16, 2048);
  const auto p = static_cast<double>(parameters(shape));
  const std::int64_t tensors = stage_parameters(shape, {}, {}, false, 0).tensors();
  const StepProgram ddp = step_of(shape, plan_of(DataParallel::ddp, 8), two, software);
  CHECK(calls_of(ddp, "adamw.") == 9 * tensors + 1);  // and the cast
  CHECK(static_cast<double>(bytes_of_kernels(ddp, "adamw.")) == Approx(94 * p).epsilon(1e-3));

  software.data.flat_parameters = FlatParameters::fsdp1;
  const StepProgram flat = step_of(shape, plan_of(DataParallel::zero3, 64), two, software);
  CHECK(calls_of(flat, "adamw.") == 9 * (4 + 1));  // a run of each unit touches one tensor
  CHECK(static_cast<double>(bytes_of_kernels(flat, "adamw.")) == Approx(88 * p / 64).epsilon(1e-3));
}

TEST_CASE("gradients of 16 bits are widened for the master weights") {
  const TransformerShape shape = gpt(4, 1024, 16, 2048);
  const ParallelPlan plan = plan_of(DataParallel::ddp, 8);
  const Precision narrow{.compute = Dtype::bf16, .gradient_reduce = Dtype::bf16};
  const auto widened = [&](const Software& software, const Precision& precision) {
    return bytes_of_kernels(step_of(shape, plan, two, software, precision), "gradients.widen");
  };
  CHECK(widened(fused(), narrow) == 6 * parameters(shape));
  CHECK(widened(fused(), {}) == 0);  // reduced in fp32
  Software autocast = eager();
  autocast.data.autocast = true;  // weights and gradients are fp32
  CHECK(widened(autocast, narrow) == 0);
  Software lamb = fused();
  lamb.optimizer.kernel = OptimizerKernel::lamb;
  CHECK(widened(lamb, narrow) == 0);
}
