#include "workloads/step/step_program.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <type_traits>

#include "tests/draws.hpp"
#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/lane_machine.hpp"
#include "workloads/pieces/piece.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;
using engine::Op;

namespace {

/// A random plan that check() accepts, of a small model, with random software.
struct RandomStep {
  TransformerShape shape;
  ParallelPlan plan;
  Batch batch;
  Precision precision;
  Software software;

  explicit RandomStep(std::mt19937& random) {
    const auto pick = [&](auto... choices) {
      const std::vector<std::common_type_t<decltype(choices)...>> all{choices...};
      return all[random() % all.size()];
    };
    const bool llama_style = pick(true, false);
    shape = llama_style ? llama(pick(3, 4, 5), 256, 8, pick(2, 8), 512) : gpt(4, 256, 8, 512);
    shape.vocab = 1024;
    shape.tied_embeddings = pick(true, false);
    shape.dropout = pick(true, false);
    if (!llama_style) shape.alibi = pick(true, false);
    if (!llama_style) shape.objective = pick(Objective::next_token, Objective::masked);
    plan.data =
        pick(DataParallel::ddp, DataParallel::zero1, DataParallel::zero2, DataParallel::zero3);
    plan.data_degree = pick(1, 2, 3, 4);
    plan.tensor = pick(1, 2, 4);
    plan.context = pick(1, 1, 2);
    plan.pipeline = pick(1, 2, 3);
    if (plan.data != DataParallel::ddp && plan.copies() % 2 == 0) plan.shard_degree = pick(0, 2);
    plan.sequence_parallel = pick(true, false);
    plan.schedule = pick(Schedule::gpipe, Schedule::one_f_one_b);
    plan.recompute = pick(Recompute::none, Recompute::selective, Recompute::full);
    plan.reduce = pick(ReduceWhen::last, ReduceWhen::each);
    plan.prefetch = pick(0, 1, 2, 9);
    batch = {.micro_batch = pick(1, 2), .micro_batches = pick(1, 2, 5), .sequence = 128};
    if (pick(true, false)) interleave(pick(2, 3), pick(1, 2));
    precision.gradient_reduce = pick(Dtype::fp32, Dtype::bf16);
    precision.loss_scaling = pick(true, false);
    software.fusion = pick(Fusion::eager, Fusion::compiled, Fusion::fused, Fusion::own);
    software.products.packed = pick(true, false);
    software.loss.gathered_logits = pick(true, false);
    software.loss.fused = pick(true, false);
    software.optimizer.kernel = pick(OptimizerKernel::foreach, OptimizerKernel::fused,
                                     OptimizerKernel::per_tensor, OptimizerKernel::lamb);
    software.data.flat_parameters =
        pick(FlatParameters::fsdp1, FlatParameters::fsdp2, FlatParameters::buckets);
    software.attention.kernel =
        pick(AttentionKernel::flash2, AttentionKernel::unfused, AttentionKernel::fused_softmax);
    software.norm.fused = pick(true, false);
    software.products.accumulate = pick(true, false);
    software.tensor.overlap = pick(true, false);
    software.data.explicit_prefetch = pick(true, false);
    software.pipeline.sync = pick(true, false);
    software.pipeline.interleaved_overlap = pick(true, false);
    software.pipeline.scatter_gather = pick(true, false);
    software.attention.exchange =
        pick(ContextExchange::ring, ContextExchange::all_gather, ContextExchange::all_to_all);
    software.host.step_sync = pick(true, false);
    software.data.gradient_overlap = pick(true, false);
    software.data.reduce_scatter = pick(true, false);
    software.data.reduce_copy_compute = pick(true, false);
    software.data.autocast = pick(true, false);
    software.optimizer.clips = pick(true, false);
    if (software.own()) return;
    precision.recipe = pick(Recipe::none, Recipe::none, Recipe::fp8_delayed, Recipe::fp8_current,
                            Recipe::fp8_block, Recipe::mxfp8, Recipe::nvfp4);
    precision.transposes = pick(true, false);
    precision.bf16_first_layers = pick(0, 1);
    precision.bf16_last_layers = pick(0, 1);
    precision.fp8_parameters = pick(true, false);
    precision.moments = pick(Dtype::fp32, Dtype::bf16);
  }

  /// v chunks a stage, of one layer each but for the last, in rounds of as many micro-batches as
  /// stages.
  void interleave(std::int64_t v, std::int64_t rounds) {
    if (plan.pipeline == 1) return;
    plan.schedule = Schedule::one_f_one_b;
    plan.virtual_stages = v;
    batch.micro_batches = rounds * plan.pipeline;
    plan.stage_layers.assign(static_cast<std::size_t>(plan.parts()), 1);
    plan.stage_layers.back() = 0;
    plan.stage_layers[1] = 2;
    shape.layers = plan.parts();
  }

  /// Another order of the stages' turns, parts of a layer each but for the last.
  void turn_to(Schedule schedule, std::int64_t stages, std::int64_t more) {
    plan.pipeline = stages;
    plan.schedule = schedule;
    plan.virtual_stages = plan.placement() == Placement::looped ? 1 : 2;
    batch.micro_batches = 2 * (stages + more);
    plan.stage_layers.assign(static_cast<std::size_t>(plan.parts()), 1);
    plan.stage_layers.front() = 2;
    plan.stage_layers.back() = 0;
    shape.layers = plan.parts();
    const bool units = StepInputs{shape, plan, batch, precision, software}.sharded();
    if (schedule == Schedule::dualpipe && units) plan.data = DataParallel::zero1;
  }

  StepProgram make() const {
    check(shape, plan, batch, "random");
    return make_step_program(shape, plan, batch, precision, software);
  }
};

void check_lanes_of_slots(const engine::Program& role) {
  std::map<std::uint32_t, std::uint8_t> lane_of_slot;
  for (const auto& i : role.instructions) {
    if (i.op != Op::join) continue;
    const auto [at, fresh] = lane_of_slot.emplace(i.communicator, i.lane);
    if (!fresh) REQUIRE(at->second == i.lane);
  }
}

void check_events(const engine::Program& role) {
  std::set<std::uint32_t> recorded;
  for (const auto& i : role.instructions) {
    if (i.op == Op::record) REQUIRE(recorded.insert(i.arg).second);
    if (i.op == Op::wait || i.op == Op::host_wait) REQUIRE(recorded.contains(i.arg));
  }
  REQUIRE(recorded.size() == role.num_events);
}

double layer_flops(const StepProgram& step) {
  double sum = 0.0;
  for (const engine::Program& role : step.roles)
    for (const auto& i : role.instructions)
      if (i.op == Op::work && step.kernels[i.arg].name.starts_with("layer."))
        sum += step.kernels[i.arg].flops.value;
  return sum;
}

}  // namespace

TEST_CASE("random plans build, keep the lane rules, and every rank reaches the end of the step") {
  for (unsigned seed = 0; seed < tests::draws(800, 8); ++seed) {
    std::mt19937 random(seed);
    const RandomStep made(random);
    INFO("seed " << seed);
    const StepProgram step = made.make();
    REQUIRE(step.roles.size() == static_cast<std::size_t>(made.plan.pipeline));
    for (const engine::Program& role : step.roles) {
      check_lanes_of_slots(role);
      check_events(role);
    }
    for (const Kernel& k : step.kernels) {
      REQUIRE(k.bytes.value > 0);
      REQUIRE(k.flops.value >= 0);
    }
    for (const Collective& c : step.collectives) REQUIRE(c.bytes.value > 0);
    LaneMachine machine(step, made.plan);
    REQUIRE(machine.run() == "");
    REQUIRE((machine.meetings() > 0) == (made.plan.ranks() > 1 && !step.collectives.empty()));
    REQUIRE(made.make().roles == step.roles);
  }
}

TEST_CASE("zero-bubble orders and DualPipe reach the end of the step, with the same work") {
  for (unsigned seed = 0; seed < tests::draws(400, 8); ++seed) {
    std::mt19937 random(seed);
    RandomStep made(random);
    const Schedule schedules[] = {Schedule::zb_h1, Schedule::zb_h2, Schedule::zb_v,
                                  Schedule::dualpipe, Schedule::dualpipe_v};
    made.turn_to(schedules[seed % 5], 2 * (1 + seed / 5 % 2), seed / 10 % 3);
    INFO("seed " << seed);
    const StepProgram step = made.make();
    for (const engine::Program& role : step.roles) {
      check_lanes_of_slots(role);
      check_events(role);
    }
    REQUIRE(LaneMachine(step, made.plan).run() == "");
    // Every part runs every micro-batch, wherever it lies and in whatever order.
    RandomStep plain = made;
    plain.plan.schedule = Schedule::one_f_one_b;
    plain.plan.virtual_stages = made.plan.parts() / made.plan.pipeline;
    REQUIRE(layer_flops(step) == Approx(layer_flops(plain.make())).epsilon(1e-12));
  }
}

TEST_CASE("two steps in a row do not tangle: the second starts where the first ended") {
  std::mt19937 random(11);
  for (int i = 0; i < 30; ++i) {
    const RandomStep made(random);
    StepProgram step = made.make();
    for (engine::Program& role : step.roles) {
      const std::vector<engine::Instruction> once = role.instructions;
      for (engine::Instruction again : once) {
        if (again.op == Op::record || again.op == Op::wait || again.op == Op::host_wait)
          again.arg += role.num_events;
        role.instructions.push_back(again);
      }
      role.num_events *= 2;
    }
    REQUIRE(LaneMachine(step, made.plan).run() == "");
  }
}

namespace {

/// The same step, call by call; returns its programs with repeats.
std::vector<engine::Program> check_repeats(const RandomStep& made) {
  const StepProgram whole = made.make();
  const StepProgram repeating =
      make_repeating_program(made.shape, made.plan, made.batch, made.precision, made.software);
  REQUIRE(repeating.kernels == whole.kernels);
  REQUIRE(repeating.collectives == whole.collectives);
  REQUIRE(repeating.roles.size() == whole.roles.size());
  for (std::size_t role = 0; role < whole.roles.size(); ++role)
    REQUIRE(engine::unrolled(repeating.roles[role]) == whole.roles[role]);
  return repeating.roles;
}

}  // namespace

TEST_CASE("a step with repeats is the same step, call by call") {
  std::size_t repeats = 0;
  for (unsigned seed = 0; seed < tests::draws(800, 8); ++seed) {
    std::mt19937 random(seed);
    RandomStep made(random);
    made.batch.micro_batches *= 1 + seed % 8;
    if (seed % 8 == 7)
      made.turn_to(seed % 16 < 8 ? Schedule::zb_h1 : Schedule::zb_h2, 2 + seed % 3, seed % 25);
    check(made.shape, made.plan, made.batch, "random");
    INFO("seed " << seed);
    for (const engine::Program& role : check_repeats(made)) repeats += role.repeats.size();
  }
  CHECK(repeats > tests::draws(800, 8));
}

TEST_CASE("a stage between the others repeats micro-batches, of whichever chunk they are") {
  std::size_t across_chunks = 0;
  for (unsigned seed = 0; seed < tests::draws(400, 8); ++seed) {
    std::mt19937 random(seed);
    RandomStep made(random);
    made.plan.pipeline = 3 + seed % 2;
    made.plan.shard_degree = 0;
    made.interleave(2 + seed % 3, 3 + seed % 5);
    made.plan.stage_layers.clear();
    made.shape.layers *= 1 + seed % 2;
    INFO("seed " << seed);
    for (const engine::Program& role : check_repeats(made))
      for (const engine::Repeat& repeat : role.repeats)
        across_chunks += static_cast<std::int64_t>(repeat.count) > made.batch.micro_batches ? 1 : 0;
  }
  CHECK(across_chunks > tests::draws(400, 8) / 4);
}
