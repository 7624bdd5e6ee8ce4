// A model, a plan, a batch and software by chance, within a rapidcheck property.
#pragma once

#include <rapidcheck.h>

#include "engine/check.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/step/framework_rules.hpp"

namespace stepcast::workloads::test {

struct Job {
  TransformerShape shape;
  ParallelPlan plan;
  Batch batch;
  Precision precision;
  Software software;
  StepInputs inputs() const { return {shape, plan, batch, precision, software}; }
};

inline TransformerShape random_shape() {
  TransformerShape shape = *rc::gen::element(llama_1b(), llama_7b(), gpt(24, 2048, 16, 4096));
  shape.dropout = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
  if (*rc::gen::inRange(0, 4) == 0)
    shape.experts = {.count = 8, .per_token = 2, .ffn = 4096, .shared_ffn = 1024, .every = 2};
  return shape;
}

inline ParallelPlan random_plan() {
  ParallelPlan plan;
  plan.data = *rc::gen::element(DataParallel::ddp, DataParallel::zero1, DataParallel::zero2,
                                DataParallel::zero3);
  plan.data_degree = *rc::gen::element<std::int64_t>(1, 2, 8, 64);
  plan.tensor = *rc::gen::element<std::int64_t>(1, 1, 2, 4);
  plan.sequence_parallel = plan.tensor > 1;
  plan.pipeline = *rc::gen::element<std::int64_t>(1, 2, 4);
  if (plan.pipeline > 1)
    plan.schedule = *rc::gen::element(Schedule::one_f_one_b, Schedule::one_f_one_b, Schedule::gpipe,
                                      Schedule::zb_h1, Schedule::zb_v);
  if (plan.schedule == Schedule::zb_v) plan.virtual_stages = 2;
  if (plan.pipeline > 1 && plan.schedule == Schedule::one_f_one_b)
    plan.virtual_stages = *rc::gen::element<std::int64_t>(1, 2);
  plan.recompute = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::operators,
                                     Recompute::full);
  if (plan.recompute == Recompute::full)
    plan.recompute_every = *rc::gen::element<std::int64_t>(1, 2);
  plan.reduce = *rc::gen::element(ReduceWhen::last, ReduceWhen::each);
  plan.prefetch = *rc::gen::inRange<std::int64_t>(0, 3);
  plan.offload.activations = *rc::gen::weightedElement<double>({{4, 0.0}, {1, 0.5}});
  plan.offload.optimizer = *rc::gen::weightedElement<double>({{4, 0.0}, {1, 0.5}});
  plan.mlp_tiles = *rc::gen::weightedElement<std::int64_t>({{6, 1}, {1, 4}});
  return plan;
}

inline Software random_software() {
  Software software = *rc::gen::element(eager(), compiled(), fused());
  software.data.flat_parameters =
      *rc::gen::element(FlatParameters::fsdp1, FlatParameters::fsdp2, FlatParameters::buckets);
  software.data.autocast = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
  software.optimizer.kernel = *rc::gen::element(OptimizerKernel::foreach, OptimizerKernel::fused);
  software.optimizer.states =
      *rc::gen::element(OptimizerStates::masters, OptimizerStates::deepspeed);
  software.attention.kernel = *rc::gen::element(AttentionKernel::flash2, AttentionKernel::unfused);
  software.loss.form = *rc::gen::weightedElement<LossForm>({{4, LossForm::whole},
                                                            {1, LossForm::chunks},
                                                            {1, LossForm::checkpointed},
                                                            {1, LossForm::fused_linear}});
  software.loss.memory =
      *rc::gen::element(LossMemory::kernels, LossMemory::dropped, LossMemory::gradient,
                        LossMemory::widened, LossMemory::shifted);
  software.attention.repeats_kv = *rc::gen::element(false, true);
  software.memory.expandable = *rc::gen::element(false, true);
  software.data.embedding_unit = *rc::gen::element(false, true);
  return software;
}

/// One that check() accepts.
inline Job random_job() {
  const Job job{
      random_shape(),
      random_plan(),
      {*rc::gen::element<std::int64_t>(1, 2, 3), *rc::gen::element<std::int64_t>(1, 4, 8, 24),
       *rc::gen::element<std::int64_t>(512, 2048)},
      {.gradient_reduce = *rc::gen::element(Dtype::fp32, Dtype::bf16),
       .recipe = *rc::gen::weightedElement<Recipe>({{4, Recipe::none}, {1, Recipe::fp8_delayed}})},
      random_software()};
  try {
    check(job.shape, job.plan, job.batch, "a job");
    for (const Rule<FrameworkPlan>& rule : framework_rules())
      if (rule.knob == std::string_view("loss_form") ||
          rule.knob == std::string_view("recompute") ||
          rule.knob == std::string_view("recompute_modules"))
        RC_PRE(!rule.broken({job.shape, job.plan, job.software}));
  } catch (const InputError&) {
    RC_DISCARD("no such job");
  }
  return job;
}

}  // namespace stepcast::workloads::test
