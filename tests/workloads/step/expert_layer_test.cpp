#include "workloads/step/expert_layer.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "tests/workloads/step_reading.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

TransformerShape one_layer_of_experts() {
  TransformerShape s = llama(1, 1024, 16, 4, 4096);
  s.experts = {.count = 8, .per_token = 2, .ffn = 512, .shared_ffn = 256};
  return s;
}

ParallelPlan expert_plan(std::int64_t degree) {
  ParallelPlan plan = test::plan_of(DataParallel::ddp, 8);
  plan.expert.degree = degree;
  plan.routing.kind = RoutingKind::balanced;
  return plan;
}

Software runs_experts() {
  Software s = fused();
  s.experts.runs = true;
  return s;
}

constexpr Batch batch{.micro_batch = 1, .micro_batches = 1, .sequence = 2048};

/// How often a rank calls each kernel and collective of a layer's experts.
std::map<std::string, int> calls_of_experts(const StepProgram& step) {
  std::map<std::string, int> out;
  for (const auto& i : step.roles[0].instructions) {
    if (i.op != engine::Op::work && i.op != engine::Op::join) continue;
    const std::string& name =
        i.op == engine::Op::work ? step.kernels[i.arg].name : step.collectives[i.arg].name;
    const bool experts = name.starts_with("layer.experts.") || name.starts_with("layer.router.") ||
                         name.starts_with("layer.shared.");
    if (experts && !name.ends_with(".accumulate")) ++out[name];
  }
  return out;
}

std::int64_t count_calls(const StepProgram& step, const std::string& name) {
  std::int64_t count = 0;
  for (const auto& i : step.roles[0].instructions)
    count += i.op == engine::Op::work && step.kernels[i.arg].name == name ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("the program of a layer alone calls what a step calls of its experts, and nothing else") {
  const TransformerShape s = one_layer_of_experts();
  for (const std::int64_t degree : {1, 8})
    for (const Dispatcher dispatcher : {Dispatcher::all_to_all, Dispatcher::node_aware})
      for (const Recipe recipe : {Recipe::none, Recipe::fp8_block}) {
        ParallelPlan plan = expert_plan(degree);
        plan.expert.dispatcher = dispatcher;
        Precision precision;
        precision.recipe = recipe;
        const Software software = runs_experts();
        const StepProgram alone = make_expert_layer_program({s, plan, batch, precision, software});
        const StepProgram step = make_step_program(s, plan, batch, precision, software);
        std::map<std::string, int> of_step = calls_of_experts(step);
        CHECK(calls_of_experts(alone) == of_step);
        CHECK(count_calls(alone, before_layer_forward) == 1);
        CHECK(count_calls(alone, before_layer_backward) == 1);
        for (const Collective& c : alone.collectives) CHECK(c.group != GroupKind::data);
      }
}

TEST_CASE("backward follows forward, and at the end the host waits for the device") {
  const TransformerShape s = one_layer_of_experts();
  const ParallelPlan plan = expert_plan(8);
  const Precision precision;
  const Software software = runs_experts();
  const StepProgram alone = make_expert_layer_program({s, plan, batch, precision, software});
  bool backward = false;
  for (const auto& i : alone.roles[0].instructions) {
    if (i.op != engine::Op::work) continue;
    const std::string& name = alone.kernels[i.arg].name;
    if (name == before_layer_backward) backward = true;
    if (name.ends_with(".forward")) CHECK_FALSE(backward);
    if (name.ends_with(".dgrad") || name.ends_with(".wgrad")) CHECK(backward);
  }
  CHECK(alone.roles[0].instructions.back().op == engine::Op::host_wait);
}
