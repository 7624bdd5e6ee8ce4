#include <catch2/catch.hpp>

#include "tests/workloads/timed_step.hpp"
#include "workloads/memory/figures.hpp"
#include "workloads/pieces/activation_memory.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

constexpr std::int64_t layers = 6;

TransformerShape six_layers() { return llama(layers, 1024, 16, 16, 4096); }

std::int64_t bytes_on(const StepProgram& step, Lane lane) {
  std::int64_t sum = 0;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == engine::Op::work && i.lane == lane) sum += step.kernels[i.arg].bytes.value;
  return sum;
}

/// A layer's forward takes F, its backward B, a copy of its activations C, all else nothing.
Duration step_time(Duration f, Duration b, Duration c) {
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  plan.offload.activations = 1.0;
  const StepProgram step = step_of(six_layers(), plan, two, fused());
  return timed_run(step, plan,
                   [&](const Kernel& k) {
                     if (k.family == KernelFamily::host_copy) return c;
                     if (k.name == "layer.norm1.forward") return f;
                     return k.name == "layer.norm1.backward" ? b : Duration{};
                   })
      .step;
}

double part_of(const Memory& memory, const std::string& name) {
  for (const MemoryPart& p : memory.parts)
    if (p.name == name) return static_cast<double>(p.bytes.value);
  FAIL("no part " << name);
  return 0;
}

Memory memory_of(const ParallelPlan& plan) {
  return fullest_memory(six_layers(), plan, two, {}, fused(), 24);
}

}  // namespace

TEST_CASE("copies of activations hide under layers that take longer") {
  CHECK(step_time(100_us, 200_us, 0_us) == layers * 300_us);
  CHECK(step_time(100_us, 200_us, 90_us) == layers * 300_us);
}

TEST_CASE("copies that take longer than layers pace forward and backward") {
  // Out: from the first forward on, one after the other; back: once all are out, the first alone,
  // then each beside the backward of the layer above.
  const Duration f = 100_us, b = 200_us, c = 300_us;
  const Duration back = f + (layers - 1) * c + c;
  CHECK(step_time(f, b, c) == back + (layers - 2) * std::max(b, c) + b);
  const Duration between = 150_us;  // longer than a forward, shorter than a backward
  const Duration first = f + (layers - 1) * between + between;
  CHECK(step_time(f, b, between) ==
        std::max(first, 2 * f + (layers - 2) * between + b) + (layers - 1) * b);
}

TEST_CASE("what goes out comes back, of all layers but each part's last") {
  for (const double share : {0.25, 1.0}) {
    ParallelPlan plan = plan_of(DataParallel::ddp, 1);
    plan.offload.activations = share;
    const Software software = fused();
    const StepProgram step = step_of(six_layers(), plan, {2, 3, 4096}, software);
    const TransformerShape shape = six_layers();
    const Batch batch{2, 3, 4096};
    const Precision precision;
    const StepInputs in{shape, plan, batch, precision, software};
    const ActivationMemory kept(in);
    const auto each = static_cast<std::int64_t>(share * static_cast<double>(kept.layer()));
    CHECK(bytes_on(step, to_host_lane) == 3 * (layers - 1) * each);
    CHECK(bytes_on(step, from_host_lane) == bytes_on(step, to_host_lane));
  }
}

// At the fullest moment, in the last layer's backward, the layer before it is on its way back.
TEST_CASE("memory falls by what is offloaded, less room for a layer on its way") {
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  const double before = part_of(memory_of(plan), "activations");
  plan.offload.activations = 0.5;
  const TransformerShape shape = six_layers();
  const Precision precision;
  const Software software = fused();
  const StepInputs in{shape, plan, two, precision, software};
  const ActivationMemory kept(in);
  const auto away = static_cast<double>(kept.layer() / 2);
  CHECK(part_of(memory_of(plan), "activations") == Approx(before - (layers - 1 - 1) * away));
}

TEST_CASE("an offloaded optimizer goes out, is updated and comes back") {
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  plan.offload.optimizer = 0.5;
  const auto half = static_cast<double>(parameters(six_layers())) / 2;
  const StepProgram step = step_of(six_layers(), plan, two, fused());
  CHECK(static_cast<double>(bytes_on(step, to_host_lane)) == Approx(4 * half).epsilon(1e-6));
  CHECK(static_cast<double>(bytes_on(step, host_lane)) == Approx(30 * half).epsilon(1e-6));
  CHECK(static_cast<double>(bytes_on(step, from_host_lane)) == Approx(2 * half).epsilon(1e-6));
  CHECK(static_cast<double>(bytes_of_kernels(step, "adamw.fused")) ==
        Approx(28 * half).epsilon(1e-6));
}

TEST_CASE("its three stages add up, or overlap piece by piece") {
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  plan.offload.optimizer = 1.0;
  const auto step_of_stages = [&](bool overlap) {
    plan.offload.optimizer_overlap = overlap;
    const Duration piece = 1_us * (overlap ? 1 : 16);
    return timed_run(step_of(six_layers(), plan, two, fused()), plan, [&](const Kernel& k) {
      if (k.name == "gradients.out") return 4 * piece;
      if (k.name == "adamw.host") return 30 * piece;
      return k.name == "parameters.back" ? 2 * piece : Duration{};
    });
  };
  const engine::RunResult serial = step_of_stages(false), overlapped = step_of_stages(true);
  CHECK(serial.step == 16 * 36_us);
  CHECK(overlapped.step == 16 * 30_us + 4_us + 2_us);
  constexpr auto offload = static_cast<std::size_t>(engine::Traffic::offload);
  CHECK(serial.ranks[0].exposed[offload] == serial.step);
  CHECK(overlapped.ranks[0].exposed[offload] == overlapped.step);
}

TEST_CASE("optimizer states leave the GPU by the share that is offloaded") {
  ParallelPlan plan = plan_of(DataParallel::zero1, 4);
  const double before = part_of(memory_of(plan), "optimizer");
  plan.offload.optimizer = 0.25;
  CHECK(part_of(memory_of(plan), "optimizer") == Approx(0.75 * before).epsilon(1e-6));
}
