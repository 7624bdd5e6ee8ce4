// What the host pays beside launches: Python in forward, modules, hooks, and the loops of logging.
#include <catch2/catch.hpp>

#include "tests/workloads/step_reading.hpp"
#include "workloads/plan/rank_parameters.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

/// Calls of a role that cost the host `cost`.
std::int64_t calls(const StepProgram& step, HostCost cost, std::size_t role = 0) {
  std::int64_t count = 0;
  for (const engine::Instruction& i : step.roles[role].instructions) count += i.host_cost == cost;
  return count;
}

std::int64_t kernels(const StepProgram& step, const std::string& prefix) {
  std::int64_t count = 0;
  for (const engine::Instruction& i : step.roles[0].instructions)
    count += i.op == engine::Op::work && step.kernels[i.arg].name.starts_with(prefix);
  return count;
}

/// Kernels of the model that write a new tensor: not those of buckets and of the optimizer.
std::int64_t written(const StepProgram& step) {
  std::int64_t count = 0;
  for (const engine::Instruction& i : step.roles[0].instructions) {
    if (i.op != engine::Op::work) continue;
    const Kernel& kernel = step.kernels[i.arg];
    const bool bucket = kernel.name.ends_with(".accumulate") || kernel.name.starts_with("bucket") ||
                        kernel.name == "gradients.zero";
    count += !bucket && kernel.family != KernelFamily::optimizer && kernel.name != "adamw.cast";
  }
  return count;
}

Software with_host() {
  Software s = fused();
  s.host.module_call = s.host.gradient_hook = std::chrono::microseconds(1);
  return s;
}

}  // namespace

TEST_CASE("a layer enters its four packed products and its attention once each way, the head one") {
  const StepProgram step = step_of(llama_1b(), plan_of(DataParallel::ddp, 1), two, with_host());
  CHECK(calls(step, module_call) == 22 * (4 + 1) * 2 + 2);
  CHECK(calls(step_of(llama_1b(), plan_of(DataParallel::ddp, 1), two, fused()), module_call) == 0);
}

TEST_CASE("full recompute enters the modules of a layer once more") {
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  plan.recompute = Recompute::full;
  CHECK(calls(step_of(llama_1b(), plan, two, with_host()), module_call) == 22 * (4 + 1) * 3 + 2);
}

TEST_CASE("states of random numbers are exchanged once per attention and forward, whole sequence") {
  Software software = fused();
  software.host.rng_fork = std::chrono::microseconds(1);
  CHECK(calls(step_of(llama_1b(), plan_of(DataParallel::ddp, 1), two, software), rng_call) == 22);
  ParallelPlan plan = plan_of(DataParallel::ddp, 1, 2);
  CHECK(calls(step_of(llama_1b(), plan, two, software), rng_call) == 22);
  plan.sequence_parallel = true;
  CHECK(calls(step_of(llama_1b(), plan, two, software), rng_call) == 0);
  CHECK(calls(step_of(llama_1b(), plan_of(DataParallel::ddp, 1), two, fused()), rng_call) == 0);
}

TEST_CASE("every tensor's hook runs in every backward") {
  const auto hooks = [](std::int64_t micro_batches) {
    const Batch batch{.micro_batch = 1, .micro_batches = micro_batches, .sequence = 2048};
    return calls(step_of(llama_1b(), plan_of(DataParallel::ddp, 2), batch, with_host()), hook_call);
  };
  // Norms 2, products 4 a layer; embedding, final norm, head.
  CHECK(hooks(1) == 22 * 6 + 3);
  CHECK(hooks(3) == 3 * hooks(1));
}

TEST_CASE("Python launches forward and what is run again, autograd the rest") {
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  const auto forward = [&] {
    return calls(step_of(llama_1b(), plan, two, fused()), forward_kernel_call);
  };
  const std::int64_t once = forward();
  const StepProgram step = step_of(llama_1b(), plan, two, fused());
  std::int64_t of_ends = 0;
  for (const engine::Instruction& i : step.roles[0].instructions) {
    if (i.op != engine::Op::work || i.host_cost != forward_kernel_call) continue;
    const std::string& name = step.kernels[i.arg].name;
    CHECK(name.find("grad") == std::string::npos);
    CHECK(name.find("backward") == std::string::npos);
    of_ends += !name.starts_with("layer.");
  }
  // Embedding, head and loss are not run again, every layer is.
  const std::int64_t of_layers = 22 * ((once - of_ends) / 22);
  CHECK(once == of_layers + of_ends);
  plan.recompute = Recompute::full;
  CHECK(forward() == once + of_layers);
}

TEST_CASE("deterministic torch fills a new tensor before each kernel of the model writes it") {
  Software software = fused();
  software.products.accumulate = false;
  const StepProgram plain = step_of(llama_1b(), plan_of(DataParallel::ddp, 1), two, software);
  software.deterministic = true;
  const StepProgram filled = step_of(llama_1b(), plan_of(DataParallel::ddp, 1), two, software);
  CHECK(kernels(filled, "fill") == written(plain));
  CHECK(kernels(plain, "fill") == 0);
  // A product's output, exactly: T x 5632 x 2 gate and up in 16 bits.
  bool exact = false;
  for (const Kernel& kernel : filled.kernels)
    exact |= kernel.name == "fill" && kernel.bytes == Bytes(2 * 2 * 4096 * 2 * 5632);
  CHECK(exact);
}

TEST_CASE("logged zeros and norms loop over every tensor, over a shard's with zero1") {
  Software software = fused();
  software.optimizer.logs_statistics = true;
  const auto casts = [&](DataParallel kind) {
    return kernels(step_of(llama_1b(), plan_of(kind, 8), two, software), "parameters.norm.cast");
  };
  const std::int64_t tensors = 22 * 6 + 3;
  CHECK(casts(DataParallel::ddp) == tensors);
  CHECK(casts(DataParallel::zero1) == (tensors + 7) / 8);
  const StepProgram step = step_of(llama_1b(), plan_of(DataParallel::ddp, 8), two, software);
  CHECK(kernels(step, "gradients.zeros") == 4 * tensors);
}
