// A small Llama, its data, and a run of it under any plan on threads of this process.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "validate/trainer/model/operations.hpp"
#include "validate/trainer/model/step.hpp"
#include "validate/trainer/ranks/text.hpp"

namespace stepcast::validate {

/// What scenarios/software/stepcast-trainer.toml says; a test holds the two together.
inline workloads::Software trainer_software() {
  workloads::Software s;
  s.framework = "stepcast-trainer";
  s.version = "host";
  s.data.reduce_each = {};
  s.fusion = workloads::Fusion::own;
  s.recompute_stops = true;
  s.experts.runs = true;
  s.attention.kernel = workloads::AttentionKernel::host;
  s.optimizer.kernel = workloads::OptimizerKernel::fused;
  s.data.explicit_prefetch = false;
  s.host.step_sync = false;
  s.data.bucket_bytes = std::int64_t{1} << 30;
  s.data.gradient_overlap = false;
  s.host.collectives_hold_core = true;
  return s;
}

/// Likewise scenarios/software/stepcast-trainer-cuda.toml, but for what calls cost.
inline workloads::Software gpu_trainer_software() {
  workloads::Software s = trainer_software();
  s.framework = "stepcast-trainer-cuda";
  s.experts.runs = false;
  s.version = "cuda";
  s.attention.kernel = workloads::AttentionKernel::own_flash;
  s.data.explicit_prefetch = true;
  s.host.step_sync = true;
  s.data.bucket_bytes = 1'000'000'000'000;
  s.host.collectives_hold_core = false;
  return s;
}

/// Likewise scenarios/software/stepcast-trainer-lanes.toml.
inline workloads::Software lanes_trainer_software() {
  workloads::Software s = trainer_software();
  s.framework = "stepcast-trainer-lanes";
  s.data.explicit_prefetch = true;
  s.host.step_sync = true;
  s.data.bucket_bytes = 25 << 20;
  s.data.gradient_overlap = true;
  s.host.collectives_hold_core = false;
  return s;
}

inline TrainerJob small_job() {
  TrainerJob job;
  job.model = {.name = "small",
               .layers = 4,
               .hidden = 16,
               .heads = 4,
               .kv_heads = 2,
               .head_dim = 4,
               .ffn_hidden = 24,
               .vocab = 32};
  job.plan.data = workloads::DataParallel::ddp;
  job.batch = {.micro_batch = 1, .micro_batches = 4, .sequence = 8};
  job.precision = {.compute = workloads::Dtype::fp32, .gradient_reduce = workloads::Dtype::fp32};
  job.software = trainer_software();
  job.learning.initial_spread = 0.3;  // losses that move in few steps
  return job;
}

/// What the tests vary of a plan.
struct Cut {
  workloads::DataParallel data = workloads::DataParallel::ddp;
  std::int64_t data_degree = 1, tensor = 1;
  bool sequence_parallel = false;
  std::int64_t pipeline = 1;
  workloads::Schedule schedule = workloads::Schedule::one_f_one_b;
  workloads::Recompute recompute = workloads::Recompute::none;
  bool tied = false;
  std::int64_t micro_batches = 4;
  std::vector<std::int64_t> stage_layers{};
  std::int64_t prefetch = 1;
  std::int64_t shard_degree = 0;
  std::int64_t virtual_stages = 1;
};

inline TrainerJob small_job(const Cut& cut) {
  TrainerJob job = small_job();
  job.plan.data = cut.data;
  job.plan.data_degree = cut.data_degree;
  job.plan.tensor = cut.tensor;
  job.plan.sequence_parallel = cut.sequence_parallel;
  job.plan.pipeline = cut.pipeline;
  job.plan.schedule = cut.schedule;
  job.plan.recompute = cut.recompute;
  job.plan.stage_layers = cut.stage_layers;
  job.plan.prefetch = cut.prefetch;
  job.plan.shard_degree = cut.shard_degree;
  job.plan.virtual_stages = cut.virtual_stages;
  job.model.tied_embeddings = cut.tied;
  job.batch.micro_batches = cut.micro_batches;
  return job;
}

/// The same sequences per step on one process.
inline TrainerJob on_one_rank(TrainerJob job) {
  job.batch.micro_batches *= job.plan.data_degree;
  const auto software = job.software;
  job.plan = {};
  job.plan.data = workloads::DataParallel::ddp;
  job.software = software;
  return job;
}

/// What a rank trains on, given its communicator.
template <class Real>
using MakeDevice = std::function<RankDevice<Real>(const TrainerJob&, Communicator&)>;

/// Calls body(trainer, data) on every rank, data(step) being the data of a step.
template <class Real, class Body>
void on_ranks(const TrainerJob& job, const MakeDevice<Real>& make_device, Body body) {
  check(job, "the test");
  const Text text = text_of(generated_text(1 << 14), job.model.vocab);
  run_ranks(job.plan.ranks(), [&](std::unique_ptr<Communicator> world) {
    Trainer<Real> trainer(job, make_device(job, *world));
    const auto data = [&](std::int64_t step) {
      return [&, step](std::int64_t micro_batch) {
        return samples_of(text, job.batch, step, trainer.share().at.data, micro_batch);
      };
    };
    body(trainer, data);
  });
}

template <class Real, class Body>
void on_ranks(const TrainerJob& job, Body body) {
  on_ranks<Real>(job, make_host_device<Real>, body);
}

/// Differences between what each rank of a real step did and what its stage's program says.
template <class Real>
std::vector<std::string> differences(const TrainerJob& job, const MakeDevice<Real>& make_device) {
  const workloads::StepProgram program =
      workloads::make_step_program(job.model, job.plan, job.batch, job.precision, job.software);
  std::vector<std::string> found;
  std::mutex mutex;
  on_ranks<Real>(job, make_device, [&](Trainer<Real>& trainer, const auto& data) {
    OperationLog log;
    trainer.step(data(0));
    trainer.step(data(1), &log);
    const auto planned = operations_of(program, trainer.share().at.pipeline);
    const std::lock_guard lock(mutex);
    if (const auto difference = first_difference(log.operations(), planned))
      found.push_back(*difference);
  });
  return found;
}

/// The loss of each step, averaged over the replicas.
template <class Real>
std::vector<double> losses(const TrainerJob& job, std::int64_t steps,
                           const MakeDevice<Real>& make_device) {
  std::vector<double> sums(static_cast<std::size_t>(steps), 0.0);
  std::mutex mutex;
  on_ranks<Real>(job, make_device, [&](Trainer<Real>& trainer, const auto& data) {
    for (std::int64_t i = 0; i < steps; ++i) {
      const StepResult result = trainer.step(data(i));
      if (!result.loss || trainer.share().at.tensor != 0) continue;
      const std::lock_guard lock(mutex);
      sums[static_cast<std::size_t>(i)] += *result.loss / static_cast<double>(job.plan.data_degree);
    }
  });
  return sums;
}

template <class Real>
std::vector<double> losses(const TrainerJob& job, std::int64_t steps) {
  return losses<Real>(job, steps, make_host_device<Real>);
}

}  // namespace stepcast::validate
