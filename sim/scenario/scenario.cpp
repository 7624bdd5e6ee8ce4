#include "sim/scenario/scenario.hpp"

#include "engine/check.hpp"
#include "workloads/step/framework_rules.hpp"

namespace stepcast::sim {
namespace {

std::string text(std::int64_t n) { return std::to_string(n); }

/// global = micro_batch x micro_batches x data degree. Without a wish: one micro-batch if there is
/// no pipeline, else micro-batches of one sequence.
void set_batch(Scenario& scenario) {
  const std::int64_t replicas = scenario.plan.data_degree;
  const std::string& where = scenario.batch_origin;
  if (scenario.global_batch % replicas != 0)
    throw InputError(where,
                     "a global batch of " + text(scenario.global_batch) +
                         " sequences does not divide over " + text(replicas) + " replicas",
                     "the global batch must be a multiple of the data-parallel degree");
  const std::int64_t sequences = scenario.global_batch / replicas;
  const auto divide = [&](std::int64_t by, const char* key) {
    if (sequences % by != 0)
      throw InputError(where,
                       std::string(key) + " = " + text(by) + " does not divide the " +
                           text(sequences) + " sequences of a replica",
                       "global = micro_batch x micro_batches x data degree");
    return sequences / by;
  };
  workloads::Batch& batch = scenario.batch;
  if (scenario.micro.micro_batch) {
    batch.micro_batch = *scenario.micro.micro_batch;
    batch.micro_batches = divide(batch.micro_batch, "micro_batch");
  } else if (scenario.micro.micro_batches) {
    batch.micro_batches = *scenario.micro.micro_batches;
    batch.micro_batch = divide(batch.micro_batches, "micro_batches");
  } else if (scenario.plan.pipeline == 1) {
    batch.micro_batch = sequences;
    batch.micro_batches = 1;
  } else {
    batch.micro_batch = 1;
    batch.micro_batches = sequences;
  }
}

}  // namespace

Scenario with_degrees(Scenario scenario, std::int64_t tensor, std::int64_t pipeline) {
  const std::int64_t context = scenario.plan.context;
  const auto fits = [&](std::int64_t degree) { return degree >= 1 && degree <= scenario.gpus; };
  if (!fits(tensor) || !fits(pipeline) || !fits(context) ||
      scenario.gpus % (tensor * pipeline * context) != 0)
    throw InputError(scenario.plan_origin,
                     "tensor " + text(tensor) + " x pipeline " + text(pipeline) +
                         (context > 1 ? " x context " + text(context) : "") +
                         " does not divide the " + text(scenario.gpus) + " GPUs",
                     context > 1 ? "tensor x context x pipeline x data degree = GPUs"
                                 : "tensor x pipeline x data degree = GPUs");
  scenario.plan.tensor = tensor;
  scenario.plan.pipeline = pipeline;
  scenario.plan.data_degree = scenario.gpus / (tensor * pipeline * context);
  scenario.plan.reduce =
      scenario.reduce.value_or(workloads::usual_reduction(scenario.plan, scenario.software));
  scenario.plan.stage_layers = scenario.stage_layers;
  if (scenario.stage_layers.empty())
    scenario.plan.stage_layers = workloads::stage_layers(scenario.software.pipeline.stage_split,
                                                         scenario.model, scenario.plan.parts());
  set_batch(scenario);
  workloads::check(scenario.model, scenario.plan, scenario.batch, scenario.plan_origin);
  workloads::check(scenario.model, scenario.plan, scenario.software, scenario.plan_origin);
  scenario.best_tensor = scenario.best_pipeline = false;
  return scenario;
}

double local_batch(const Scenario& scenario) {
  return static_cast<double>(scenario.global_batch) / static_cast<double>(scenario.gpus);
}

}  // namespace stepcast::sim
