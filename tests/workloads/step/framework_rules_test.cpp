#include "workloads/step/framework_rules.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/workloads/fixtures.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

Software framework(DataKinds kinds, DataKinds with_stages) {
  Software s;
  s.framework = "some-framework";
  s.version = "7";
  s.data.kinds = kinds;
  s.data.pipeline_kinds = with_stages;
  return s;
}

ParallelPlan plan_of(DataParallel data, std::int64_t pipeline = 1) {
  ParallelPlan plan;
  plan.data = data;
  plan.data_degree = 4;
  plan.pipeline = pipeline;
  return plan;
}

std::string refusal(const ParallelPlan& plan, const Software& software) {
  try {
    check(llama_7b(), plan, software, "a.toml:3");
  } catch (const InputError& error) {
    return error.what();
  }
  return "runs";
}

const Software two_stages_at_most = framework({DataParallel::ddp, DataParallel::zero2}, {});

}  // namespace

TEST_CASE("a kind of data that the framework does not have is refused with those that it has") {
  CHECK(refusal(plan_of(DataParallel::zero2), two_stages_at_most) == "runs");
  CHECK(refusal(plan_of(DataParallel::zero3), two_stages_at_most) ==
        "a.toml:3: some-framework 7 cannot run data = \"zero3\", it runs ddp, zero2");
}

TEST_CASE("a kind may run without pipeline stages only") {
  const Software software = framework(all_data_kinds, {DataParallel::ddp, DataParallel::zero1});
  CHECK(refusal(plan_of(DataParallel::zero3), software) == "runs");
  CHECK(refusal(plan_of(DataParallel::zero1, 2), software) == "runs");
  CHECK(refusal(plan_of(DataParallel::zero3, 2), software) ==
        "a.toml:3: some-framework 7 cannot run data = \"zero3\" with pipeline stages, "
        "with stages it runs ddp, zero1");
  CHECK(refusal(plan_of(DataParallel::ddp, 2), two_stages_at_most) ==
        "a.toml:3: some-framework 7 has no pipeline stages, take pipeline = 1");
}

TEST_CASE("a framework that cuts no layers refuses tensor and context parallelism") {
  Software software = two_stages_at_most;
  software.tensor.cuts_layers = false;
  ParallelPlan plan = plan_of(DataParallel::ddp);
  CHECK(refusal(plan, software) == "runs");
  plan.tensor = 2;
  CHECK(refusal(plan, software) ==
        "a.toml:3: some-framework 7 has no tensor or context parallelism, take tensor = 1 and "
        "context = 1");
  plan.tensor = 1;
  plan.context = 2;
  CHECK(refusal(plan, software) != "runs");
}

TEST_CASE("Megatron-FSDP adds zero2 and zero3 to Megatron, and to nothing else") {
  Software megatron =
      framework({DataParallel::ddp, DataParallel::zero1}, {DataParallel::ddp, DataParallel::zero1});
  Software other = megatron;
  megatron.framework = "megatron-core";
  CHECK(refusal(plan_of(DataParallel::zero3), megatron) ==
        "a.toml:3: megatron-core 7 cannot run data = \"zero3\", it runs ddp, zero1; with "
        "use_megatron_fsdp = true in [software] zero2 and zero3 as well");
  megatron.data.use_megatron_fsdp = other.data.use_megatron_fsdp = true;
  CHECK(refusal(plan_of(DataParallel::zero3), megatron) == "runs");
  CHECK(refusal(plan_of(DataParallel::zero2, 2), megatron) == "runs");
  CHECK(refusal(plan_of(DataParallel::ddp), other) ==
        "a.toml:3: use_megatron_fsdp with some-framework 7, it is a flag of megatron-core and "
        "nemo");
}

TEST_CASE("gradients are reduced when the framework does so, with stages mostly at the end") {
  Software software;
  software.data.reduce_each = {DataParallel::zero2, DataParallel::zero3};
  CHECK(usual_reduction(plan_of(DataParallel::ddp), software) == ReduceWhen::last);
  CHECK(usual_reduction(plan_of(DataParallel::zero3), software) == ReduceWhen::each);
  CHECK(usual_reduction(plan_of(DataParallel::zero3, 2), software) == ReduceWhen::last);
  software.data.reduce_each_in_pipeline = true;
  CHECK(usual_reduction(plan_of(DataParallel::zero3, 2), software) == ReduceWhen::each);
}

TEST_CASE("every rule says which key to change and what to do instead") {
  const TransformerShape shape = llama_7b();
  const ParallelPlan plan = plan_of(DataParallel::zero1, 2);
  const FrameworkPlan asked{shape, plan, two_stages_at_most};
  for (const Rule<FrameworkPlan>& rule : framework_rules()) {
    CHECK_FALSE(rule.knob.empty());
    CHECK_FALSE(rule.what(asked).empty());
    CHECK_FALSE(rule.hint(asked).empty());
  }
}
