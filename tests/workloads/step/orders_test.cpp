// Orders of turns as the calls of a step.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "tests/workloads/lane_machine.hpp"
#include "tests/workloads/step_reading.hpp"
#include "workloads/plan/pipeline.hpp"
#include "workloads/plan/rank_parameters.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

constexpr Batch eight{.micro_batch = 1, .micro_batches = 8, .sequence = 1024};

ParallelPlan stages_of(Schedule schedule, std::int64_t stages, std::int64_t chunks = 1) {
  ParallelPlan plan = plan_of(DataParallel::zero1, 2, 1, stages);
  plan.schedule = schedule;
  plan.virtual_stages = chunks;
  return plan;
}

/// The same order, as a file would list it.
ParallelPlan listed(ParallelPlan plan, const Batch& batch) {
  ListedOrders orders{"order.csv", plan.placement(), plan.virtual_stages, batch.micro_batches, {}};
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage)
    orders.stages.push_back(turns_of_stage(pipeline_shape(plan, batch), stage));
  plan.schedule = Schedule::listed;
  plan.orders.list = std::make_shared<const ListedOrders>(std::move(orders));
  return plan;
}

std::int64_t count_of(const StepProgram& step, std::size_t role, const std::string& end) {
  return std::ranges::count_if(step.roles[role].instructions, [&](const auto& i) {
    return i.op == engine::Op::work && step.kernels[i.arg].name.ends_with(end);
  });
}

}  // namespace

TEST_CASE("an order that is listed is the order that is built in") {
  for (const ParallelPlan& plan :
       {stages_of(Schedule::one_f_one_b, 4), stages_of(Schedule::gpipe, 4),
        stages_of(Schedule::zb_h1, 4), stages_of(Schedule::zb_v, 4, 2),
        stages_of(Schedule::dualpipe_v, 4, 2)}) {
    const StepProgram step = step_of(llama_7b(), plan, eight);
    const StepProgram same = step_of(llama_7b(), listed(plan, eight), eight);
    CHECK(step.roles == same.roles);
    CHECK(step.kernels == same.kernels);
    CHECK(step.collectives == same.collectives);
  }
}

TEST_CASE(
    "ZB-H1 calls what 1F1B calls, weight gradients after the gradients that others wait for") {
  const StepProgram plain = step_of(llama_7b(), stages_of(Schedule::one_f_one_b, 4), eight);
  const StepProgram parted = step_of(llama_7b(), stages_of(Schedule::zb_h1, 4), eight);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    CHECK(flops_of(parted, stage) == Approx(flops_of(plain, stage)).epsilon(1e-12));
    for (const char* end : {".forward", ".dgrad", ".wgrad", ".accumulate"})
      CHECK(count_of(parted, stage, end) == count_of(plain, stage, end));
    CHECK(bytes_by_name(parted, stage) == bytes_by_name(plain, stage));
  }
}

TEST_CASE("folded parts: the first stage has both ends of the model and sends each way twice") {
  const StepProgram step = step_of(llama_7b(), stages_of(Schedule::zb_v, 4, 2), eight);
  CHECK(count_of(step, 0, "embedding.forward") == 8);
  CHECK(count_of(step, 0, "head.forward") == 8);
  CHECK(count_of(step, 3, "head.forward") == 0);
  const std::int64_t message = 2 * 1024 * 4096;
  // Stage 0 sends and receives activations of 8 micro-batches once each, stage 1 twice.
  CHECK(bytes_by_name(step, 0).at("pipeline.forward") == 2 * 8 * message);
  CHECK(bytes_by_name(step, 1).at("pipeline.forward") == 4 * 8 * message);
  CHECK(bytes_by_name(step, 3).at("pipeline.backward") == 2 * 8 * message);
}

TEST_CASE("mirrored stages hold two parts and add up their gradients") {
  ParallelPlan plan = stages_of(Schedule::dualpipe, 4, 2);
  const StepProgram step = step_of(llama_7b(), plan, eight);
  const StepProgram once = step_of(llama_7b(), stages_of(Schedule::one_f_one_b, 4), eight);
  double all = 0.0, expected = 0.0;
  for (std::size_t stage = 0; stage < 4; ++stage) {
    CHECK(count_of(step, stage, "layer.mlp.down.wgrad") == 16 * 4);  // 4 of either way, 16 layers
    for (const auto& i : step.roles[stage].instructions)
      if (i.op == engine::Op::work && step.kernels[i.arg].name.starts_with("layer."))
        all += step.kernels[i.arg].flops.value;
    for (const auto& i : once.roles[stage].instructions)
      if (i.op == engine::Op::work && once.kernels[i.arg].name.starts_with("layer."))
        expected += once.kernels[i.arg].flops.value;
    // A half of them each, of two copies: 4 bytes an element.
    const auto parameters =
        stage_parameters(llama_7b(), plan, {}, false, static_cast<std::int64_t>(stage));
    CHECK(bytes_by_name(step, stage).at("mirror.reduce") == 4 * parameters.elements() / 2);
  }
  CHECK(all == Approx(expected).epsilon(1e-12));
  CHECK(groups(plan, GroupKind::mirror) == RankGroups{{0, 6}, {1, 7}, {2, 4}, {3, 5}});
}

TEST_CASE("a pair runs the backward's and the forward's layers by turns") {
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  plan.expert.overlap = true;  // what pairs are for; one order whatever the layers are
  const Batch batch{.micro_batch = 1, .micro_batches = 4, .sequence = 1024};
  const StepProgram step = step_of(llama_7b(), plan, batch);
  std::string order;
  for (const auto& i : step.roles[0].instructions) {
    if (i.op != engine::Op::work) continue;
    const std::string& name = step.kernels[i.arg].name;
    if (name == "layer.mlp.down.forward") order += "F";
    if (name == "layer.mlp.down.wgrad") order += "B";
  }
  std::string expected(32, 'F');
  for (int i = 0; i < 3 * 32; ++i) expected += "BF";
  CHECK(order == expected + std::string(32, 'B'));
}
