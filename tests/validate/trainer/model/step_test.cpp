#include "validate/trainer/model/step.hpp"

#include <catch2/catch.hpp>

#include "tests/validate/trainer_fixtures.hpp"
#include "workloads/memory/memory.hpp"

namespace stepcast::validate {
namespace {

using enum workloads::DataParallel;
using workloads::Recompute;
using workloads::Schedule;

struct Case {
  const char* name;
  Cut cut;
};

const std::vector<Case> cases{
    {"ddp", {.data_degree = 2}},
    {"ddp of 4, tied", {.data_degree = 4, .tied = true}},
    {"zero2", {.data = zero2, .data_degree = 2}},
    {"zero2, tied", {.data = zero2, .data_degree = 4, .tied = true}},
    {"zero2, one micro-batch", {.data = zero2, .data_degree = 2, .micro_batches = 1}},
    {"zero3", {.data = zero3, .data_degree = 2}},
    {"zero3, one micro-batch", {.data = zero3, .data_degree = 2, .micro_batches = 1}},
    {"zero3, recompute", {.data = zero3, .data_degree = 4, .recompute = Recompute::full}},
    {"tensor", {.tensor = 2}},
    {"tensor, tied", {.tensor = 2, .tied = true}},
    {"sequence", {.tensor = 2, .sequence_parallel = true}},
    {"sequence, recompute", {.tensor = 2, .sequence_parallel = true, .recompute = Recompute::full}},
    {"sequence, zero3, tied",
     {.data = zero3, .data_degree = 2, .tensor = 2, .sequence_parallel = true, .tied = true}},
    {"gpipe", {.pipeline = 2, .schedule = Schedule::gpipe}},
    {"gpipe of 4, tied", {.pipeline = 4, .schedule = Schedule::gpipe, .tied = true}},
    {"1f1b", {.pipeline = 2}},
    {"1f1b of 4, selective, tied",
     {.pipeline = 4, .recompute = Recompute::selective, .tied = true}},
    {"1f1b, zero2, tied", {.data = zero2, .data_degree = 2, .pipeline = 2, .tied = true}},
    {"1f1b, zero3", {.data = zero3, .data_degree = 2, .pipeline = 2}},
    {"1f1b of 3, uneven", {.pipeline = 3, .recompute = Recompute::full, .stage_layers = {2, 1, 1}}},
    {"zero1", {.data = zero1, .data_degree = 2}},
    {"zero1 of groups, tied", {.data = zero1, .data_degree = 4, .tied = true, .shard_degree = 2}},
    {"3D, zero1, sequence, tied",
     {.data = zero1,
      .data_degree = 2,
      .tensor = 2,
      .sequence_parallel = true,
      .pipeline = 2,
      .tied = true}},
    {"hsdp, zero2", {.data = zero2, .data_degree = 4, .shard_degree = 2}},
    {"hsdp, zero3, one micro-batch",
     {.data = zero3, .data_degree = 4, .micro_batches = 1, .shard_degree = 2}},
    {"interleaved", {.pipeline = 2, .virtual_stages = 2}},
    {"interleaved, recompute, tied",
     {.pipeline = 2, .recompute = Recompute::full, .tied = true, .virtual_stages = 2}},
    {"interleaved, hsdp, tied",
     {.data = zero3,
      .data_degree = 4,
      .pipeline = 2,
      .tied = true,
      .shard_degree = 2,
      .virtual_stages = 2}},
    {"3D, ddp", {.data_degree = 2, .tensor = 2, .pipeline = 2}},
    {"3D, zero3, sequence, recompute, tied",
     {.data = zero3,
      .data_degree = 2,
      .tensor = 2,
      .sequence_parallel = true,
      .pipeline = 2,
      .recompute = Recompute::full,
      .tied = true}},
};

/// Largest relative difference of two loss curves.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]) / std::abs(b[i]));
  return worst;
}

TEST_CASE("every plan learns as one process does on the same data, in float64") {
  for (const Case& c : cases) {
    const TrainerJob job = small_job(c.cut);
    const auto one = losses<double>(on_one_rank(job), 20), many = losses<double>(job, 20);
    INFO(c.name);
    CHECK(distance(many, one) < 1e-9);
    CHECK(one.back() < 0.98 * one.front());
  }
}

TEST_CASE("every plan learns as one process does on the same data, in float32") {
  for (const Case& c : cases) {
    const TrainerJob job = small_job(c.cut);
    const auto one = losses<float>(on_one_rank(job), 20), many = losses<float>(job, 20);
    INFO(c.name);
    CHECK(distance(many, one) < 2e-4);  // Adam divides by roots of tiny squares
  }
}

TEST_CASE("clipping sees the norm of the whole model under every plan") {
  for (const Case& c : cases) {
    TrainerJob job = small_job(c.cut);
    double norm = 0.0;
    on_ranks<double>(on_one_rank(job), [&](Trainer<double>& trainer, const auto& data) {
      norm = trainer.step(data(0)).gradient_norm;
    });
    INFO(c.name);
    on_ranks<double>(job, [&](Trainer<double>& trainer, const auto& data) {
      if (std::abs(trainer.step(data(0)).gradient_norm / norm - 1.0) > 1e-10)
        throw std::runtime_error("another norm");
    });
  }
}

TEST_CASE("a rank allocates what the simulator says, to the byte") {
  for (const Case& c : cases) {
    const TrainerJob job = small_job(c.cut);
    std::mutex mutex;
    on_ranks<float>(job, [&](Trainer<float>& trainer, const auto& data) {
      trainer.step(data(0));
      trainer.step(data(1));
      const Bytes told = workloads::memory_of_stage(job.model, job.plan, job.batch, job.precision,
                                                    job.software, trainer.share().at.pipeline)
                             .total();
      const std::lock_guard lock(mutex);
      INFO(c.name << ", stage " << trainer.share().at.pipeline);
      CHECK(trainer.allocated() == told);
    });
  }
}

TEST_CASE("the loss falls on a small text") {
  TrainerJob job = small_job();
  job.model.vocab = 128;
  job.model.layers = 2;
  job.model.hidden = 32;
  job.model.head_dim = 8;
  job.model.ffn_hidden = 64;
  job.batch = {.micro_batch = 8, .micro_batches = 1, .sequence = 32};
  job.learning.initial_spread = 0.05;
  job.learning.rate = 1e-2;
  const auto curve = losses<float>(job, 60);
  CHECK(curve.front() == Approx(std::log(128.0)).epsilon(0.1));  // knows nothing at first
  CHECK(curve.back() < 0.75 * curve.front());
}

}  // namespace
}  // namespace stepcast::validate
