// The host's ranks with a thread for each lane: the same steps as with one, whatever runs beside
// what.
#include <catch2/catch.hpp>

#include "tests/validate/trainer_fixtures.hpp"
#include "workloads/memory/memory.hpp"

namespace stepcast::validate {
namespace {

using enum workloads::DataParallel;
using workloads::Recompute;
using workloads::Schedule;

const std::vector<Cut> cuts{
    {},
    {.data_degree = 2},
    {.data_degree = 3, .tied = true, .micro_batches = 1},
    {.data = zero2, .data_degree = 2, .prefetch = 2},
    {.data = zero2, .data_degree = 4, .tied = true, .micro_batches = 1},
    {.data = zero3, .data_degree = 2},
    {.data = zero3, .data_degree = 2, .micro_batches = 1, .prefetch = 2},
    {.data = zero3, .data_degree = 4, .recompute = Recompute::full, .tied = true, .prefetch = 2},
    {.tensor = 2, .sequence_parallel = true, .tied = true},
    {.pipeline = 2, .schedule = Schedule::gpipe},
    {.pipeline = 4, .tied = true},
    {.data = zero3, .data_degree = 2, .pipeline = 2, .micro_batches = 1},
    {.data_degree = 2, .tensor = 2, .sequence_parallel = true, .pipeline = 2},
    {.data = zero1, .data_degree = 2},
    {.data = zero1, .data_degree = 4, .tied = true, .micro_batches = 1, .shard_degree = 2},
    {.data = zero1,
     .data_degree = 2,
     .tensor = 2,
     .sequence_parallel = true,
     .pipeline = 2,
     .tied = true},
    {.data = zero2, .data_degree = 4, .shard_degree = 2},
    {.data = zero3, .data_degree = 4, .micro_batches = 1, .prefetch = 2, .shard_degree = 2},
    {.data = zero3, .data_degree = 4, .pipeline = 2, .tied = true, .shard_degree = 2},
    {.pipeline = 2, .virtual_stages = 2},
    {.pipeline = 2,
     .recompute = Recompute::full,
     .tied = true,
     .micro_batches = 2,
     .virtual_stages = 2},
    {.pipeline = 3, .micro_batches = 6, .stage_layers = {0, 1, 1, 1, 1, 0}, .virtual_stages = 2},
    {.data_degree = 2, .pipeline = 2, .tied = true, .virtual_stages = 2},
    {.data = zero2, .data_degree = 2, .pipeline = 2, .micro_batches = 2, .virtual_stages = 2},
    {.data = zero3,
     .data_degree = 2,
     .pipeline = 2,
     .tied = true,
     .micro_batches = 2,
     .virtual_stages = 2},
    {.data = zero1, .data_degree = 2, .tensor = 2, .pipeline = 2, .virtual_stages = 2},
    {.data = zero3,
     .data_degree = 4,
     .pipeline = 2,
     .prefetch = 2,
     .shard_degree = 2,
     .virtual_stages = 2}};

TrainerJob lanes_job(const Cut& cut) {
  TrainerJob job = small_job(cut);
  job.software = lanes_trainer_software();
  job.software.data.bucket_bytes = 4 * 1500;  // a layer has 1,728 parameters
  return job;
}

TEST_CASE("a step on lanes does what the simulator's program says, lane by lane") {
  for (const Cut& cut : cuts) {
    INFO(&cut - cuts.data());
    CHECK(differences<float>(lanes_job(cut), make_host_device<float>) ==
          std::vector<std::string>{});
  }
}

TEST_CASE("collectives beside compute leave every bit of the loss as it is one after the other") {
  for (const Cut& cut : cuts) {
    INFO(&cut - cuts.data());
    TrainerJob one_lane = lanes_job(cut);
    one_lane.software.host.collectives_hold_core = true;
    CHECK(losses<float>(lanes_job(cut), 3) == losses<float>(one_lane, 3));
  }
}

TEST_CASE("every plan on lanes learns as one process does on the same data") {
  for (const Cut& cut : cuts) {
    INFO(&cut - cuts.data());
    const auto one = losses<double>(on_one_rank(small_job(cut)), 3);
    const auto many = losses<double>(lanes_job(cut), 3);
    for (std::size_t step = 0; step < one.size(); ++step)
      CHECK(many[step] == Approx(one[step]).epsilon(1e-11));
  }
}

TEST_CASE("zero1 may sum whole buckets and take its shards of them") {
  for (const Cut& cut : {Cut{.data = zero1, .data_degree = 2},
                         Cut{.data = zero1, .data_degree = 2, .pipeline = 2, .tied = true}}) {
    TrainerJob job = lanes_job(cut);
    job.software.data.reduce_scatter = false;
    CHECK(differences<float>(job, make_host_device<float>) == std::vector<std::string>{});
    const auto one = losses<double>(on_one_rank(small_job(cut)), 3);
    const auto many = losses<double>(job, 3);
    for (std::size_t step = 0; step < one.size(); ++step)
      CHECK(many[step] == Approx(one[step]).epsilon(1e-11));
  }
}

TEST_CASE("a rank on lanes allocates what the simulator says, to the byte") {
  for (const Cut& cut : cuts)
    for (const std::int64_t vocab : {32, 256}) {
      TrainerJob job = lanes_job(cut);
      job.model.vocab = vocab;  // a root smaller and larger than a layer
      std::mutex mutex;
      on_ranks<float>(job, [&](Trainer<float>& trainer, const auto& data) {
        trainer.step(data(0));
        trainer.step(data(1));
        const Bytes told = workloads::memory_of_stage(job.model, job.plan, job.batch, job.precision,
                                                      job.software, trainer.share().at.pipeline)
                               .total();
        const std::lock_guard lock(mutex);
        INFO(&cut - cuts.data() << ", vocabulary " << vocab);
        CHECK(trainer.allocated().value == told.value);
      });
    }
}

TEST_CASE("200 runs on lanes give the same bits") {
  const std::vector<Cut> raced{
      {.data_degree = 2, .micro_batches = 1},
      {.data = zero3, .data_degree = 2, .micro_batches = 1, .prefetch = 2},
      {.data = zero2, .data_degree = 2, .pipeline = 2, .micro_batches = 2},
      {.data = zero1, .data_degree = 4, .micro_batches = 1, .shard_degree = 2},
      {.data = zero3, .data_degree = 4, .micro_batches = 1, .prefetch = 2, .shard_degree = 2},
      {.pipeline = 2, .micro_batches = 2, .virtual_stages = 2}};
  for (const Cut& cut : raced) {
    const TrainerJob job = lanes_job(cut);
    const auto first = losses<float>(job, 2);
    int others = 0;
    for (int run = 0; run < 200; ++run) others += losses<float>(job, 2) == first ? 0 : 1;
    INFO(&cut - raced.data());
    CHECK(others == 0);
  }
}

}  // namespace
}  // namespace stepcast::validate
