#include "workloads/memory/figures.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tests/workloads/fixtures.hpp"
#include "workloads/memory/step_allocations.hpp"
#include "workloads/pieces/activation_memory.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

constexpr std::int64_t channels = 24;

ParallelPlan plan_of(DataParallel kind, std::int64_t data, std::int64_t tensor = 1,
                     std::int64_t pipeline = 1) {
  ParallelPlan plan;
  plan.data = kind;
  plan.data_degree = data;
  plan.tensor = tensor;
  plan.sequence_parallel = tensor > 1;
  plan.pipeline = pipeline;
  return plan;
}

constexpr Batch one{.micro_batch = 1, .micro_batches = 1, .sequence = 4096};
constexpr Batch eight{.micro_batch = 1, .micro_batches = 8, .sequence = 4096};

/// The parts without what no allocator hands out.
double tensors(const Memory& memory) {
  double sum = 0;
  for (const MemoryPart& part : memory.parts)
    if (part.name != "fixed" && part.name != "fragmentation")
      sum += static_cast<double>(part.bytes.value);
  return sum;
}

}  // namespace

TEST_CASE("the step's own tensors come to the sum of the parts, and the figures are in order") {
  ParallelPlan recomputed = plan_of(DataParallel::zero1, 8);
  recomputed.recompute = Recompute::full;
  const struct {
    ParallelPlan plan;
    Batch batch;
    Software software;
  } cases[] = {
      {plan_of(DataParallel::zero2, 8), one, eager()},
      {plan_of(DataParallel::zero3, 8), one, eager()},
      {plan_of(DataParallel::zero3, 8), eight, compiled()},
      {plan_of(DataParallel::zero1, 8), one, fused()},
      {plan_of(DataParallel::zero1, 2, 2, 2), eight, fused()},
      {recomputed, eight, fused()},
  };
  for (const auto& c : cases) {
    const Memory parts = fullest_memory(llama_7b(), c.plan, c.batch, {}, c.software, 24);
    const MemoryFigures figures =
        memory_figures(llama_7b(), c.plan, c.batch, {}, c.software, channels);
    INFO(name_of(c.plan.data) << " pipeline " << c.plan.pipeline);
    CHECK(static_cast<double>(figures.allocated.value) == Approx(tensors(parts)).epsilon(0.01));
    CHECK(figures.allocated <= figures.held);
    CHECK(figures.held <= figures.reserved);
    CHECK(figures.process() == figures.reserved + Bytes(figures.fixed.total()));
  }
}

TEST_CASE("after a step only states are left, and the second step takes what the first freed") {
  for (const DataParallel kind : {DataParallel::zero1, DataParallel::zero3}) {
    const ParallelPlan plan = plan_of(kind, 4, 1, kind == DataParallel::zero1 ? 2 : 1);
    const Software software = kind == DataParallel::zero1 ? fused() : eager();
    const Precision precision;
    const TransformerShape shape = llama_1b();
    const StepAllocations steps = step_allocations({shape, plan, eight, precision, software}, 0);
    std::map<std::uint32_t, std::int64_t> alive;
    std::int64_t after_first = 0, now = 0;
    for (std::size_t i = 0; i < steps.order.size(); ++i) {
      const auto second = std::find_if(steps.turns.begin(), steps.turns.end(),
                                       [](const AllocationTurn& t) { return t.step == 1; });
      if (i == second->first && plan.data == DataParallel::zero1) after_first = now;
      const Allocation& a = steps.order[i];
      now += a.bytes > 0 ? a.bytes : -alive[a.tensor];
      if (a.bytes > 0)
        alive[a.tensor] = a.bytes;
      else
        alive.erase(a.tensor);
    }
    if (after_first > 0) CHECK(now == after_first);
    for (const Allocation& a : steps.order)
      if (a.bytes > 0 && alive.count(a.tensor) > 0)
        CHECK((a.kind == TensorKind::parameters || a.kind == TensorKind::gradients ||
               a.kind == TensorKind::optimizer || a.kind == TensorKind::communication));
  }
}

TEST_CASE("a layer that runs again makes its tensors in forward too, and keeps its output alone") {
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  plan.recompute = Recompute::full;
  const TransformerShape shape = llama_1b();
  const Precision precision;
  for (const Software& software : {eager(), fused()}) {
    const StepInputs in{shape, plan, one, precision, software};
    const StepAllocations steps = step_allocations(in, 0);
    std::map<TensorKind, std::int64_t> made;
    for (std::size_t i = steps.turns[0].first; i < steps.turns[1].first; ++i)
      made[steps.order[i].kind] += steps.order[i].bytes;
    const ActivationMemory layer(in);
    // All but the inputs of its two norms, or their own copies of them, and what lies between.
    const std::int64_t norm = (software.eager() ? 6 : 2) * 4096 * shape.hidden;
    std::int64_t work = layer.layer_without_recompute() - 2 * norm + layer.layer();
    for (const std::int64_t bytes : layer.forward_work_tensors()) work += bytes;
    CHECK(made[TensorKind::work] == shape.layers * work);
    CHECK(made[TensorKind::activations] == (shape.layers + 1) * layer.layer());
  }
}

TEST_CASE("where memory is planned, reserved is what is allocated") {
  Software software = fused();
  software.memory.allocator = Allocator::planned;
  const ParallelPlan plan = plan_of(DataParallel::zero1, 8);
  const MemoryFigures figures = memory_figures(llama_7b(), plan, one, {}, software, channels);
  CHECK(static_cast<double>(figures.allocated.value) ==
        tensors(fullest_memory(llama_7b(), plan, one, {}, software, 24)));
  CHECK(figures.reserved == figures.allocated);
}

TEST_CASE("kernels loaded at once, and more channels, are the process's alone") {
  const ParallelPlan plan = plan_of(DataParallel::ddp, 8);
  Software software = fused();
  const auto figures = [&](std::int64_t n) {
    return memory_figures(llama_1b(), plan, one, {}, software, n);
  };
  const MemoryFigures lazy = figures(24);
  CHECK(lazy.fixed.nccl_gib == Approx(2 * figures(12).fixed.nccl_gib));
  software.memory.lazy_modules = false;
  CHECK(figures(24).reserved == lazy.reserved);
  CHECK((figures(24).process() - lazy.process()).value == Approx(1e9 - 0.4 * 1073741824).margin(2));
}

// A short sequence: with few activations a backward is fullest at its end.
TEST_CASE("DeepSpeed keeps 16-bit gradients, and in bf16 with fp32 sums both, whole") {
  constexpr Batch brief{.micro_batch = 1, .micro_batches = 8, .sequence = 64};
  Software software = fused();
  software.optimizer.states = OptimizerStates::deepspeed;
  const auto gradients = [&](DataParallel kind, Precision precision) {
    const Memory m = fullest_memory(llama_1b(), plan_of(kind, 8), brief, precision, software, 24);
    for (const MemoryPart& part : m.parts)
      if (part.name == "gradients") return static_cast<double>(part.bytes.value);
    return 0.0;
  };
  const auto all = static_cast<double>(parameters(llama_1b()));
  constexpr Precision fp16{.compute = Dtype::fp16, .gradient_reduce = Dtype::fp16};
  // In the update the shard's gradients are made flat and widened.
  CHECK(gradients(DataParallel::zero1, fp16) == Approx((2 + 6.0 / 8) * all).epsilon(1e-6));
  CHECK(gradients(DataParallel::zero1, {}) == Approx(6 * all).epsilon(1e-5));
  CHECK(gradients(DataParallel::ddp, {}) == Approx(6 * all).epsilon(1e-5));
}

TEST_CASE("torch DDP's buckets hold all gradients once more, unless a rank is alone") {
  Software software = eager();
  software.data.flat_parameters = FlatParameters::buckets;
  const auto allocated = [&](std::int64_t ranks, bool buckets) {
    software.data.reducer_buckets = buckets;
    software.data.bucket_bytes = 25 << 20;
    return memory_figures(llama_1b(), plan_of(DataParallel::ddp, ranks), one, {}, software,
                          channels)
        .allocated;
  };
  const auto all = static_cast<double>(parameters(llama_1b()));
  const Bytes more = allocated(2, true) - allocated(2, false);
  // A bucket of 25 MiB takes a segment of 26, whose last MiB is not split off.
  CHECK(static_cast<double>(more.value) == Approx(2 * all * 26 / 25 - (26 << 20)).epsilon(0.001));
  CHECK(allocated(1, true) < allocated(2, true));
}

TEST_CASE("a static graph's stages but the last have room for twice the stages and one") {
  Software software = fused();
  software.memory.allocator = Allocator::planned;
  ParallelPlan plan = plan_of(DataParallel::ddp, 1, 1, 4);
  plan.recompute = Recompute::full;
  const auto kept = [&](std::int64_t buffers, std::int64_t stage) {
    software.pipeline.buffers = buffers;
    const Memory m = memory_of_stage(llama_7b(), plan, eight, {}, software, stage);
    for (const MemoryPart& part : m.parts)
      if (part.name == "activations") return part.bytes.value;
    return std::int64_t{0};
  };
  // Stage 1 of 4 has 3 micro-batches in flight, and recomputes one layer either way.
  const std::int64_t input = 2 * 4096 * 4096, layers = 32 / 4;
  CHECK(kept(2, 1) - kept(0, 1) == (9 - 3) * layers * input);
  CHECK(kept(2, 3) == kept(0, 3));
}

TEST_CASE("a loss in one place keeps the softmax alone and needs 10 bytes a logit at its peak") {
  Software software = eager();
  const ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  const auto logits = [&](LossMemory memory) {
    software.loss.memory = memory;
    const TransformerShape shape = llama_1b();
    const Memory m = memory_of_stage(shape, plan, one, {}, software, 0);
    for (const MemoryPart& part : m.parts)
      if (part.name == "logits") return static_cast<double>(part.bytes.value);
    return 0.0;
  };
  const double each = 4096.0 * 32000;
  CHECK(logits(LossMemory::kernels) - logits(LossMemory::in_place) == 4 * each);
  CHECK(logits(LossMemory::in_place) - logits(LossMemory::low) == 6 * each);
  // 14 bytes at the peak; without the 16-bit logits 12, of a model that returns fp32 ones 16; a
  // gradient in the logits' place 2, in fp32 6.
  CHECK(logits(LossMemory::kernels) - logits(LossMemory::dropped) == 2 * each);
  CHECK(logits(LossMemory::widened) - logits(LossMemory::kernels) == 2 * each);
  // Fewer, and another moment of the step is the fullest: of the head by itself.
  const auto peak = [&](LossMemory memory) {
    software.loss.memory = memory;
    const TransformerShape shape = llama_1b();
    const Precision precision;
    const ActivationMemory head({shape, plan, one, precision, software});
    return static_cast<double>(head.head_tensors().back() + head.loss_work());
  };
  CHECK(peak(LossMemory::kernels) == 14 * each);
  CHECK(peak(LossMemory::gradient) == 2 * each);
  CHECK(peak(LossMemory::gradient_fp32) == 6 * each);
  CHECK(peak(LossMemory::shifted) == 8 * each);
}

TEST_CASE("logits that are dropped or shifted leave a hole that what comes later does not fit") {
  constexpr Batch long_batch{.micro_batch = 4, .micro_batches = 1, .sequence = 4096};
  for (const std::int64_t tensor : {1, 2}) {
    Software software = eager();
    software.memory.expandable = true;
    const ParallelPlan plan = plan_of(DataParallel::zero1, 8, tensor);
    const auto unused = [&](LossMemory memory) {
      software.loss.memory = memory;
      const MemoryFigures f =
          memory_figures(llama(2, 2048, 32, 4, 5632), plan, long_batch, {}, software, channels);
      return static_cast<double>(f.reserved.value - f.allocated.value);
    };
    INFO(tensor);
    const double each = 4 * 4096.0 * 32000 / static_cast<double>(tensor);
    CHECK(unused(LossMemory::dropped) >= 2 * each);
    CHECK(unused(LossMemory::kernels) < 2 * each);
    // 16-bit logits that are gone when what was made of them in fp32 is shifted: 2 bytes.
    CHECK(unused(LossMemory::shifted) >= 2 * each);
  }
}

TEST_CASE("FSDP1's hooks on frozen units hold inputs and gradients of layers that run again") {
  TransformerShape shape = llama_7b();
  shape.lora.rank = 16;
  ParallelPlan plan = plan_of(DataParallel::zero3, 4);
  plan.recompute = Recompute::full;
  Software software = eager();
  software.loss.form = LossForm::fused_linear;
  software.data.flat_parameters = FlatParameters::fsdp1;
  const auto allocated = [&](bool reentrant) {
    software.reentrant_recompute = reentrant;
    const MemoryFigures f = memory_figures(shape, plan, one, {}, software, channels);
    return static_cast<double>(f.allocated.value);
  };
  const double layer = 2.0 * 4096 * 4096;
  CHECK(allocated(true) - allocated(false) == Approx(31 * layer).epsilon(0.05));
  SECTION("a selection of operators has no backward of its own") {
    plan.recompute = Recompute::operators;
    CHECK(allocated(true) == allocated(false));
  }
  SECTION("FSDP2 has other hooks") {
    software.data.flat_parameters = FlatParameters::fsdp2;
    CHECK(allocated(true) == allocated(false));
  }
  SECTION("trained units tell by their own gradients") {
    shape.lora.rank = 0;
    CHECK(allocated(true) == allocated(false));
  }
}

TEST_CASE("DeepEP has room for rows under way, HybridEP for all tokens at one rank") {
  TransformerShape shape = llama(4, 2048, 32, 4, 0);
  shape.experts = {.count = 128, .per_token = 8, .ffn = 768};
  ParallelPlan plan = plan_of(DataParallel::zero1, 16);
  const auto mib = [&](Dispatcher dispatcher, std::int64_t ranks) {
    plan.expert.degree = ranks;
    plan.expert.dispatcher = dispatcher;
    const MemoryFigures f = memory_figures(shape, plan, one, {}, fused(), channels);
    return 1024 * f.fixed.nccl_gib;
  };
  const auto more = [&](Dispatcher dispatcher, std::int64_t ranks) {
    return mib(dispatcher, ranks) - mib(Dispatcher::all_to_all, ranks);
  };
  CHECK(more(Dispatcher::node_aware, 8) == Approx(10 * 8 * 256 * 6152.0 / 1048576));
  CHECK(more(Dispatcher::node_aware, 16) ==
        Approx((10 * 8 * 288 * 6152.0 + 2 * 10 * 2 * 128 * 6168.0) / 1048576));
  CHECK(more(Dispatcher::nvlink_domain, 16) == Approx(4096 * 16 * (4096.0 + 512) / 1048576));
  CHECK(more(Dispatcher::node_aware, 1) == 0);
}
