#include "workloads/step/step_program.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/workloads/step_reading.hpp"
#include "workloads/memory/figures.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;
using engine::Op;

TEST_CASE("a step's FLOPs are three forwards of GEMMs and 3.5 of attention") {
  // 6 T per matmul weight; attention 4 b s^2 h / 2 forward, 2.5 times that backward.
  const double tokens = 8192,
               matmul = 32.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008) + 32000.0 * 4096;
  const double attention = 32 * tokens * 2 * 4096 * 4096.0;
  for (const Software& software : {eager(), compiled(), fused()})
    for (const DataParallel kind : {DataParallel::ddp, DataParallel::zero2, DataParallel::zero3})
      CHECK(flops_of(step_of(llama_7b(), plan_of(kind, 8), two, software), 0) ==
            Approx(6 * tokens * matmul + 3.5 * attention).epsilon(1e-12));
}

TEST_CASE("all ranks of a 3D plan together do the FLOPs of one") {
  Batch batch{.micro_batch = 1, .micro_batches = 4, .sequence = 4096};
  const StepProgram whole = step_of(llama_70b(), plan_of(DataParallel::zero2, 1), batch);
  const StepProgram cut = step_of(llama_70b(), plan_of(DataParallel::zero2, 2, 4, 3), batch);
  double sum = 0;
  for (std::size_t role = 0; role < 3; ++role) sum += 4 * flops_of(cut, role);
  CHECK(sum == Approx(flops_of(whole, 0)).epsilon(1e-12));
}

TEST_CASE("recompute of every second layer is that of half of them, in FLOPs and in memory") {
  TransformerShape shape = llama_1b();
  shape.layers = 5;  // the first, third and fifth are recomputed
  const auto with = [](Recompute recompute, std::int64_t every) {
    ParallelPlan plan;
    plan.data = DataParallel::ddp;
    plan.recompute = recompute;
    plan.recompute_every = every;
    return plan;
  };
  const ParallelPlan none = with(Recompute::none, 1), all = with(Recompute::full, 1),
                     some = with(Recompute::full, 2);
  const auto flops = [&](const ParallelPlan& plan) { return flops_of(step_of(shape, plan), 0); };
  CHECK(flops(some) == Approx(0.4 * flops(none) + 0.6 * flops(all)).epsilon(1e-12));
  const auto memory = [&](const ParallelPlan& plan) {
    return fullest_memory(shape, plan, two, {}, eager(), 24).total();
  };
  CHECK(memory(some) < memory(none));
  CHECK(memory(some) > memory(all));
  CHECK_THROWS_AS(check(shape, with(Recompute::none, 2), two, "a.toml:1"), InputError);
}

TEST_CASE("one data rank copies but has no data collectives") {
  for (const DataParallel kind :
       {DataParallel::ddp, DataParallel::zero1, DataParallel::zero2, DataParallel::zero3}) {
    const StepProgram step = step_of(llama_7b(), plan_of(kind, 1));
    CHECK(step.collectives.empty());
    CHECK(std::none_of(step.roles[0].instructions.begin(), step.roles[0].instructions.end(),
                       [](const auto& i) { return i.op == Op::mark; }));
  }
  CHECK(bytes_of_kernels(step_of(llama_7b(), plan_of(DataParallel::zero2, 1)), "layer.copy_out") >
        0);
}

TEST_CASE("AdamW moves 80 bytes a parameter of the shard as foreach, 28 fused") {
  Software software = eager();
  const auto bytes = [&](std::int64_t n) {
    return static_cast<double>(bytes_of_kernels(
        step_of(llama_7b(), plan_of(DataParallel::zero2, n), two, software), "adamw."));
  };
  const double p = 6'738'415'616.0;
  CHECK(bytes(8) == Approx(80 * p / 8).epsilon(1e-6));
  CHECK(bytes(256) == Approx(80 * p / 256).epsilon(1e-6));
  software.optimizer.kernel = OptimizerKernel::fused;
  CHECK(bytes(8) == Approx(28 * p / 8).epsilon(1e-6));
  const StepProgram ddp = step_of(llama_7b(), plan_of(DataParallel::ddp, 8), two, software);
  CHECK(static_cast<double>(bytes_of_kernels(ddp, "adamw.fused")) == Approx(28 * p).epsilon(1e-6));
}

TEST_CASE("the norm of the gradients meets all ranks once, and the mark follows it") {
  const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero2, 4, 2, 2));
  for (const engine::Program& role : step.roles) {
    const auto is_world = [](const auto& i) {
      return i.op == Op::join && i.communicator == slot_of(GroupKind::world);
    };
    const auto& all = role.instructions;
    REQUIRE(std::count_if(all.begin(), all.end(), is_world) == 1);
    const auto at = std::find_if(all.begin(), all.end(), is_world);
    CHECK((at + 1)->op == Op::mark);
    CHECK(std::count_if(all.begin(), all.end(), [](const auto& i) { return i.op == Op::mark; }) ==
          1);
  }
  Software software = eager();
  software.optimizer.clips = false;
  const StepProgram plain =
      step_of(llama_7b(), plan_of(DataParallel::zero2, 4, 2, 2), two, software);
  for (const auto& i : plain.roles[0].instructions) CHECK(i.op != Op::mark);
}

TEST_CASE("stages exchange one hidden tensor per micro-batch and direction") {
  const Batch batch{.micro_batch = 1, .micro_batches = 6, .sequence = 4096};
  ParallelPlan plan = plan_of(DataParallel::zero2, 2, 2, 4);
  const std::int64_t a = 2 * 4096 * 4096;
  for (const bool cut : {false, true}) {
    plan.sequence_parallel = cut;
    const StepProgram step = step_of(llama_7b(), plan, batch);
    const std::int64_t each = 6 * (cut ? a / 2 : a);
    CHECK(bytes_by_name(step, 0).at("pipeline.forward") == each);
    CHECK(bytes_by_name(step, 1).at("pipeline.forward") == 2 * each);  // received and sent
    CHECK(bytes_by_name(step, 3).at("pipeline.backward") == each);
    CHECK(bytes_by_name(step, 3).at("pipeline.forward") == each);
  }
}

TEST_CASE("tied embeddings on two stages sum their gradients in fp32") {
  TransformerShape s = gpt(4, 1024, 16, 4096);
  s.vocab = 51200;
  const StepProgram step = step_of(s, plan_of(DataParallel::ddp, 2, 2, 2));
  CHECK(bytes_by_name(step, 0).at("embedding.reduce") == 4 * 51200 / 2 * 1024);
  CHECK(bytes_by_name(step, 1).at("embedding.reduce") == 4 * 51200 / 2 * 1024);
  CHECK(bytes_by_name(step_of(s, plan_of(DataParallel::ddp, 2, 2, 1))).count("embedding.reduce") ==
        0);
}

TEST_CASE("a plan that check() refuses is a broken promise") {
  CHECK_THROWS_AS(step_of(llama_7b(), plan_of(DataParallel::zero2, 1, 3)), BrokenPromise);
  CHECK_THROWS_AS(step_of(llama_7b(), plan_of(DataParallel::zero2, 1, 1, 40)), BrokenPromise);
}

TEST_CASE("where collectives hold the core, the same calls run on one lane in the same order") {
  Software one_lane = compiled();
  one_lane.host.collectives_hold_core = true;
  for (const DataParallel kind : {DataParallel::ddp, DataParallel::zero2, DataParallel::zero3}) {
    const auto lanes = step_of(llama_7b(), plan_of(kind, 8), two, compiled()).roles[0].instructions;
    const auto one = step_of(llama_7b(), plan_of(kind, 8), two, one_lane).roles[0].instructions;
    REQUIRE(lanes.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      REQUIRE(one[i].lane == compute);
      REQUIRE(one[i].op == lanes[i].op);
      REQUIRE(one[i].arg == lanes[i].arg);
    }
    CHECK(std::any_of(lanes.begin(), lanes.end(), [](const auto& i) { return i.lane != compute; }));
  }
}

TEST_CASE("fp32 weights are their own master") {
  Precision fp32{.compute = Dtype::fp32, .gradient_reduce = Dtype::fp32};
  const StepProgram step =
      make_step_program(llama_7b(), plan_of(DataParallel::ddp, 8), two, fp32, fused());
  CHECK(bytes_of_kernels(step, "adamw.cast") == 0);
}

TEST_CASE("virtual stages send v times as often, and once round the corner less at the ends") {
  const Batch batch{.micro_batch = 1, .micro_batches = 8, .sequence = 4096};
  ParallelPlan plan = plan_of(DataParallel::ddp, 1, 1, 4);
  const std::int64_t message = 2 * 4096 * 4096;
  for (const std::int64_t v : {1, 2, 4}) {
    plan.virtual_stages = v;
    const StepProgram step = step_of(llama_7b(), plan, batch, fused());
    for (std::size_t stage = 0; stage < 4; ++stage) {
      const bool end = stage == 0 || stage == 3;
      // As sender and as receiver, one end has one neighbour less.
      CHECK(bytes_by_name(step, stage).at("pipeline.forward") ==
            (2 * v - (end ? 1 : 0)) * 8 * message);
      CHECK(bytes_by_name(step, stage).at("pipeline.backward") ==
            (2 * v - (end ? 1 : 0)) * 8 * message);
    }
  }
}

TEST_CASE("chunks compute the layers that their stage holds, no more and no less") {
  const Batch batch{.micro_batch = 1, .micro_batches = 4, .sequence = 4096};
  ParallelPlan plan = plan_of(DataParallel::zero3, 2, 1, 4);
  const auto layer_flops = [&](std::size_t stage) {
    const StepProgram step = step_of(llama_7b(), plan, batch);
    double sum = 0.0;
    for (const auto& i : step.roles[stage].instructions)
      if (i.op == engine::Op::work && step.kernels[i.arg].name.starts_with("layer."))
        sum += step.kernels[i.arg].flops.value;
    return sum;
  };
  const double even = layer_flops(1);
  plan.virtual_stages = 2;
  CHECK(layer_flops(1) == Approx(even));
  plan.stage_layers = {1, 5, 5, 4, 5, 5, 4, 3};
  CHECK(layer_flops(0) == Approx(even * 6 / 8));
  CHECK(layer_flops(1) == Approx(even * 10 / 8));
}

TEST_CASE("scatter-gather sends 1/t between stages and gathers it over the tensor group") {
  const Batch batch{.micro_batch = 1, .micro_batches = 4, .sequence = 4096};
  ParallelPlan plan = plan_of(DataParallel::ddp, 1, 8, 2);
  Software software = fused();
  const auto whole = bytes_by_name(step_of(llama_7b(), plan, batch, software));
  software.pipeline.scatter_gather = true;
  const auto parts = bytes_by_name(step_of(llama_7b(), plan, batch, software));
  CHECK(parts.at("pipeline.forward") * 8 == whole.at("pipeline.forward"));
  // Backward of the first stage: one message for each micro-batch, gathered to its full size.
  CHECK(parts.at("pipeline.gather") == whole.at("pipeline.backward"));
  plan.sequence_parallel = true;  // cut already
  CHECK(!bytes_by_name(step_of(llama_7b(), plan, batch, software)).contains("pipeline.gather"));
}

TEST_CASE("a stage without norms sums none: no collective of nothing") {
  ParallelPlan plan = plan_of(DataParallel::zero1, 1, 2, 4);
  plan.sequence_parallel = true;
  plan.stage_layers = {0, 16, 16, 0};
  const Batch batch{.micro_batch = 1, .micro_batches = 4, .sequence = 1024};
  TransformerShape shape = llama_7b();
  const StepProgram step = step_of(shape, plan, batch);
  for (const Collective& c : step.collectives) {
    CAPTURE(c.name);
    CHECK(c.bytes.value > 0);
  }
}
