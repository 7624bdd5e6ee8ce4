#include "workloads/step/optimizer_calls.hpp"

#include <algorithm>

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

TEST_CASE("forms of optimizers move the bytes that their kernels read and write") {
  const TransformerShape shape = gpt(4, 1024, 16, 2048);
  const auto p = static_cast<double>(parameters(shape));
  const std::int64_t tensors = stage_parameters(shape, {}, {}, false, 0).tensors();
  ParallelPlan plan = plan_of(DataParallel::ddp, 8);
  Software software = eager();
  software.optimizer.kernel = OptimizerKernel::fused;
  const auto moved = [&](Optimizer form, const std::string& prefix, bool masters = true) {
    plan.optimizer = form;
    Precision precision;
    precision.masters = masters;
    const StepProgram step = step_of(shape, plan, two, software, precision);
    return static_cast<double>(bytes_of_kernels(step, prefix)) / p;
  };
  // Norms and biases of fewer than 4,096 elements have moments of 32 bits.
  CHECK(moved(Optimizer::adam_8bit, "adam_8bit") == Approx(16).epsilon(0.01));
  CHECK(moved(Optimizer::adam_8bit, "adam_8bit", false) == Approx(10).epsilon(0.01));
  CHECK(moved(Optimizer::adafactor, "adafactor.") == Approx(84).epsilon(1e-3));
  CHECK(moved(Optimizer::adafactor, "adafactor.", false) == Approx(102).epsilon(1e-3));
  CHECK(moved(Optimizer::sgd, "sgd.") == Approx(20).epsilon(1e-3));
  plan.optimizer = Optimizer::adafactor;
  CHECK(calls_of(step_of(shape, plan, two, software), "adafactor.") == 12 * tensors);
}

TEST_CASE("Muon's owners share its products, five times 4 m m n + 2 m m m of a matrix") {
  const TransformerShape shape = gpt(4, 1024, 16, 2048);
  const auto flops = [&](DataParallel data, std::int64_t degree, const Software& software) {
    ParallelPlan plan = plan_of(data, degree);
    plan.optimizer = Optimizer::muon;
    const StepProgram step = step_of(shape, plan, two, software);
    double sum = 0;
    for (const auto& i : step.roles[0].instructions)
      if (i.op == engine::Op::work && step.kernels[i.arg].name.starts_with("muon."))
        sum += step.kernels[i.arg].flops.value;
    return sum;
  };
  double whole = 0;
  for (const ParameterTensor& t : layer_tensors(shape, {}, true)) {
    if (!t.matrix()) continue;
    const auto m = static_cast<double>(std::min(t.rows, t.columns())),
               n = static_cast<double>(std::max(t.rows, t.columns()));
    whole += 4 * 5 * (4 * m * m * n + 2 * m * m * m);
  }
  CHECK(flops(DataParallel::ddp, 8, fused()) == Approx(whole));
  // 16 matrices, four of each size, from large to small, forth and back among four.
  CHECK(flops(DataParallel::zero1, 4, fused()) == Approx(whole / 4));
  const double third = flops(DataParallel::zero1, 3, fused());
  CHECK(third > whole / 4);
  CHECK(third < whole / 2);

  Software fsdp2 = eager();
  fsdp2.data.flat_parameters = FlatParameters::fsdp2;
  ParallelPlan plan = plan_of(DataParallel::zero3, 4);
  plan.optimizer = Optimizer::muon;
  const StepProgram step = step_of(shape, plan, two, fsdp2);
  const auto exchanges = std::ranges::count_if(step.collectives, [](const Collective& c) {
    return c.name == "muon.to_owners" || c.name == "muon.from_owners";
  });
  CHECK(exchanges == 2);
}

TEST_CASE("an optimizer inside backward takes no norm of all gradients") {
  ParallelPlan plan = plan_of(DataParallel::zero3, 8);
  const TransformerShape shape = gpt(4, 1024, 16, 2048);
  CHECK(bytes_of_kernels(step_of(shape, plan, two, eager()), "gradients.norm") > 0);
  plan.optimizer_in_backward = true;
  CHECK(bytes_of_kernels(step_of(shape, plan, two, eager()), "gradients.norm") == 0);
}
