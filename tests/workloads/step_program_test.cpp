#include "workloads/step_program.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <string>

#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/lane_machine.hpp"
#include "workloads/rank_parameters.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;
using engine::Op;

namespace {

constexpr Batch two{.micro_batch = 2, .micro_batches = 1, .sequence = 4096};

ParallelPlan plan_of(DataParallel kind, std::int64_t data, std::int64_t tensor = 1,
                     std::int64_t pipeline = 1) {
  ParallelPlan plan;
  plan.data = kind;
  plan.data_degree = data;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  return plan;
}

/// Bytes of the collectives of one kind that a role joins, by collective name.
std::map<std::string, std::int64_t> bytes_by_name(const StepProgram& step, std::size_t role = 0) {
  std::map<std::string, std::int64_t> out;
  for (const auto& i : step.roles[role].instructions)
    if (i.op == Op::join) out[step.collectives[i.arg].name] += step.collectives[i.arg].bytes.value;
  return out;
}

double flops_of(const StepProgram& step, std::size_t role) {
  double sum = 0;
  for (const auto& i : step.roles[role].instructions)
    if (i.op == Op::work) sum += step.kernels[i.arg].flops.value;
  return sum;
}

std::int64_t bytes_of_kernels(const StepProgram& step, const std::string& prefix,
                              std::size_t role = 0) {
  std::int64_t sum = 0;
  for (const auto& i : step.roles[role].instructions)
    if (i.op == Op::work && step.kernels[i.arg].name.starts_with(prefix))
      sum += step.kernels[i.arg].bytes.value;
  return sum;
}

std::vector<std::string> data_lane_order(const StepProgram& step) {
  std::vector<std::string> out;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == Op::join && i.lane == data_lane) out.push_back(step.collectives[i.arg].name);
  return out;
}

StepProgram step_of(const TransformerShape& s, const ParallelPlan& p, const Batch& b = two,
                    const Software& software = eager(), const Precision& precision = {}) {
  return make_step_program(s, p, b, precision, software);
}

constexpr std::int64_t layer_7b = 202'383'360;
constexpr std::int64_t root_7b = 2 * 32000 * 4096 + 4096;

}  // namespace

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

TEST_CASE(
    "zero2 gathers 2P once and reduces 4P in fp32 or 2P in bf16, zero3 gathers layers twice") {
  const auto z2 = bytes_by_name(step_of(llama_7b(), plan_of(DataParallel::zero2, 8)));
  CHECK(z2.at("layer.gather") == 32 * 2 * layer_7b);
  CHECK(z2.at("root.gather") == 2 * root_7b);
  CHECK(z2.at("layer.reduce") == 32 * 4 * layer_7b);
  CHECK(z2.at("root.reduce") == 4 * root_7b);
  Precision narrow;
  narrow.gradient_reduce = Dtype::bf16;
  const auto bf16 =
      bytes_by_name(step_of(llama_7b(), plan_of(DataParallel::zero2, 8), two, eager(), narrow));
  CHECK(bf16.at("layer.reduce") == 32 * 2 * layer_7b);
  const auto z3 = bytes_by_name(step_of(llama_7b(), plan_of(DataParallel::zero3, 8)));
  CHECK(z3.at("layer.gather") == 2 * 32 * 2 * layer_7b);
  CHECK(z3.at("root.gather") == 2 * root_7b);
  CHECK(z3.at("layer.reduce") == 32 * 4 * layer_7b);
}

TEST_CASE("gradient accumulation reduces once, or with each micro-batch") {
  const Batch four{.micro_batch = 1, .micro_batches = 4, .sequence = 4096};
  ParallelPlan plan = plan_of(DataParallel::zero2, 8);
  const auto last = bytes_by_name(step_of(llama_7b(), plan, four));
  CHECK(last.at("layer.gather") == 32 * 2 * layer_7b);
  CHECK(last.at("layer.reduce") == 32 * 4 * layer_7b);
  plan.reduce = ReduceWhen::each;
  const auto each = bytes_by_name(step_of(llama_7b(), plan, four));
  CHECK(each.at("layer.gather") == 4 * 32 * 2 * layer_7b);
  CHECK(each.at("layer.reduce") == 4 * 32 * 4 * layer_7b);
  plan.data = DataParallel::zero3;
  CHECK(bytes_by_name(step_of(llama_7b(), plan, four)).at("layer.gather") == 8 * 32 * 2 * layer_7b);
}

TEST_CASE("FSDP2 copies 2P out of the gather buffer and widens 2P to 4P before the reduction") {
  const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero2, 8));
  const std::int64_t all = 32 * layer_7b;
  CHECK(bytes_of_kernels(step, "layer.copy_out") == 4 * all);
  CHECK(bytes_of_kernels(step, "layer.chunk_cat") == 6 * all);
  CHECK(bytes_of_kernels(step, "layer.cast") == 6 * all / 8);
  CHECK(bytes_of_kernels(step, "layer.copy_in") == 4 * all / 8);
}

TEST_CASE("explicit prefetch issues the next unit's gather before this unit's kernels") {
  TransformerShape s = llama_7b();
  s.layers = 3;
  Software software = eager();
  ParallelPlan plan = plan_of(DataParallel::zero2, 8);
  const auto first_kernel_after_gathers = [&](std::int64_t depth, bool explicit_prefetch) {
    plan.prefetch = depth;
    software.explicit_prefetch = explicit_prefetch;
    const StepProgram step = step_of(s, plan, two, software);
    int gathers = 0;
    for (const auto& i : step.roles[0].instructions) {
      if (i.op == Op::join && i.lane == data_lane) ++gathers;
      if (i.op == Op::work && step.kernels[i.arg].name == "layer.norm1.forward.upcast")
        return gathers;
    }
    return -1;
  };
  // Root and layer 0, and what is ahead of layer 0.
  CHECK(first_kernel_after_gathers(1, false) == 2);
  CHECK(first_kernel_after_gathers(0, true) == 2);
  CHECK(first_kernel_after_gathers(1, true) == 3);
  CHECK(first_kernel_after_gathers(2, true) == 4);
}

TEST_CASE("zero3's backward gathers unit k-1 before it reduces unit k") {
  TransformerShape s = llama_7b();
  s.layers = 3;
  CHECK(data_lane_order(step_of(s, plan_of(DataParallel::zero3, 8))) ==
        std::vector<std::string>{"root.gather", "layer.gather", "layer.gather", "layer.gather",
                                 "layer.gather", "layer.gather", "layer.reduce", "layer.gather",
                                 "layer.reduce", "layer.reduce", "root.reduce"});
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

TEST_CASE("DDP all-reduces every gradient once in buckets no smaller than 25 MiB but the ends") {
  const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::ddp, 8));
  std::vector<std::int64_t> buckets;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == Op::join && i.lane == data_lane) {
      CHECK(step.collectives[i.arg].kind == CollectiveKind::all_reduce);
      buckets.push_back(step.collectives[i.arg].bytes.value);
    }
  std::int64_t sum = 0;
  for (const std::int64_t b : buckets) sum += b;
  CHECK(sum == 4 * 6'738'415'616);
  REQUIRE(buckets.size() > 100);
  CHECK(buckets.front() >= 1 << 20);
  for (std::size_t i = 1; i + 1 < buckets.size(); ++i) CHECK(buckets[i] >= 25 << 20);
}

TEST_CASE("without overlap the buckets are one reduction after backward") {
  Software software = fused();
  software.gradient_overlap = false;
  const auto bytes =
      bytes_by_name(step_of(llama_7b(), plan_of(DataParallel::zero1, 8), two, software));
  CHECK(bytes.at("bucket.reduce") == 4 * 6'738'415'616);
  CHECK(bytes.at("parameters.gather") == 2 * 6'738'415'616);
  const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero1, 8), two, software);
  CHECK(data_lane_order(step).front() == "bucket.reduce");
  CHECK(data_lane_order(step)[1] == "parameters.gather");
}

TEST_CASE("zero1 reduce-scatters and gathers parameters, DeepSpeed all-reduces") {
  Software software = fused();
  const auto kinds = [&] {
    std::set<CollectiveKind> out;
    const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero1, 8), two, software);
    for (const Collective& c : step.collectives)
      if (c.group == GroupKind::data) out.insert(c.kind);
    return out;
  };
  using enum CollectiveKind;
  CHECK(kinds() == std::set<CollectiveKind>{reduce_scatter, all_gather});
  software.reduce_scatter = false;
  CHECK(kinds() == std::set<CollectiveKind>{all_reduce, all_gather});
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
  software.optimizer = OptimizerKernel::fused;
  CHECK(bytes(8) == Approx(28 * p / 8).epsilon(1e-6));
  const StepProgram ddp = step_of(llama_7b(), plan_of(DataParallel::ddp, 8), two, software);
  CHECK(static_cast<double>(bytes_of_kernels(ddp, "adamw.fused")) == Approx(28 * p).epsilon(1e-6));
}

TEST_CASE("the norm of the gradients meets all ranks once, and the mark follows it") {
  const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero2, 4, 2, 2));
  for (const engine::Program& role : step.roles) {
    const auto is_world = [](const auto& i) {
      return i.op == Op::join && i.communicator == world_slot;
    };
    const auto& all = role.instructions;
    REQUIRE(std::count_if(all.begin(), all.end(), is_world) == 1);
    const auto at = std::find_if(all.begin(), all.end(), is_world);
    CHECK((at + 1)->op == Op::mark);
    CHECK(std::count_if(all.begin(), all.end(), [](const auto& i) { return i.op == Op::mark; }) ==
          1);
  }
  Software software = eager();
  software.clip_gradients = false;
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
    plan.data =
        pick(DataParallel::ddp, DataParallel::zero1, DataParallel::zero2, DataParallel::zero3);
    plan.data_degree = pick(1, 2, 3);
    plan.tensor = pick(1, 2, 4);
    plan.pipeline = pick(1, 2, 3);
    plan.sequence_parallel = pick(true, false);
    plan.schedule = pick(Schedule::gpipe, Schedule::one_f_one_b);
    plan.recompute = pick(Recompute::none, Recompute::selective, Recompute::full);
    plan.reduce = pick(ReduceWhen::last, ReduceWhen::each);
    plan.prefetch = pick(0, 1, 2, 9);
    batch = {.micro_batch = pick(1, 2), .micro_batches = pick(1, 2, 5), .sequence = 128};
    precision.gradient_reduce = pick(Dtype::fp32, Dtype::bf16);
    precision.loss_scaling = pick(true, false);
    software.fusion = pick(Fusion::eager, Fusion::compiled, Fusion::fused);
    software.packed_projections = pick(true, false);
    software.optimizer = pick(OptimizerKernel::foreach, OptimizerKernel::fused);
    software.flat_parameters =
        pick(FlatParameters::fsdp1, FlatParameters::fsdp2, FlatParameters::buckets);
    software.attention = pick(AttentionKernel::flash2, AttentionKernel::unfused);
    software.tensor_overlap = pick(true, false);
    software.explicit_prefetch = pick(true, false);
    software.pipeline_sync = pick(true, false);
    software.step_sync = pick(true, false);
    software.gradient_overlap = pick(true, false);
    software.reduce_scatter = pick(true, false);
    software.reduce_copy_compute = pick(true, false);
    software.autocast = pick(true, false);
    software.clip_gradients = pick(true, false);
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

}  // namespace

TEST_CASE("random plans build, keep the lane rules, and every rank reaches the end of the step") {
  for (unsigned seed = 0; seed < 400; ++seed) {
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

TEST_CASE("a plan that check() refuses is a broken promise") {
  CHECK_THROWS_AS(step_of(llama_7b(), plan_of(DataParallel::zero2, 1, 3)), BrokenPromise);
  CHECK_THROWS_AS(step_of(llama_7b(), plan_of(DataParallel::zero2, 1, 1, 40)), BrokenPromise);
}
