// Training in 16 bits with fp32 masters on lanes that run beside each other, without a GPU.
#include <catch2/catch.hpp>

#include "tests/validate/deferred_device.hpp"
#include "tests/validate/emulated_device.hpp"
#include "tests/validate/trainer_fixtures.hpp"
#include "workloads/memory/memory.hpp"

namespace stepcast::validate {
namespace {

using enum workloads::DataParallel;
using workloads::Recompute;
using workloads::Schedule;

const std::vector<Cut> cuts{
    {},
    {.tied = true, .micro_batches = 1},
    {.data_degree = 2},
    {.data = zero2, .data_degree = 2},
    {.data = zero2, .data_degree = 2, .tied = true, .micro_batches = 1},
    {.data = zero3, .data_degree = 1, .micro_batches = 1},
    {.data = zero3, .data_degree = 2, .micro_batches = 1},
    {.data = zero3, .data_degree = 4, .recompute = Recompute::full, .tied = true},
    {.tensor = 2, .recompute = Recompute::selective},
    {.tensor = 2, .sequence_parallel = true, .tied = true},
    {.pipeline = 2, .schedule = Schedule::gpipe},
    {.pipeline = 4, .tied = true},
    {.data = zero3, .data_degree = 2, .pipeline = 2, .micro_batches = 1},
    {.data = zero2, .data_degree = 2, .tensor = 2, .sequence_parallel = true, .pipeline = 2},
    {.data = zero1, .data_degree = 4, .shard_degree = 2},
    {.data = zero1, .data_degree = 2, .pipeline = 2, .tied = true},
    {.data = zero3, .data_degree = 4, .micro_batches = 1, .shard_degree = 2},
    {.pipeline = 2, .tied = true, .virtual_stages = 2}};

TrainerJob gpu_job(const Cut& cut, workloads::Dtype compute = workloads::Dtype::bf16) {
  TrainerJob job = small_job(cut);
  job.software = gpu_trainer_software();
  job.precision.compute = compute;
  job.precision.loss_scaling = compute == workloads::Dtype::fp16;
  return job;
}

template <class Real>
std::unique_ptr<Kernels<Real>> rounded_kernels(const TrainerJob& job) {
  return std::make_unique<RoundedKernels<Real>>(job.batch.sequence, job.model.head_dim);
}
template <class Real>
std::unique_ptr<Kernels<Real>> emulated_kernels(const TrainerJob& job) {
  return make_emulated_kernels<Real>(job.batch.sequence, job.model.head_dim);
}
template <class Real>
using MakeKernels = std::unique_ptr<Kernels<Real>> (*)(const TrainerJob&);

template <class Real>
MakeDevice<Real> deferred(std::uint32_t seed,
                          MakeKernels<Real> make_kernels = rounded_kernels<Real>) {
  return [=](const TrainerJob& job, Communicator& processes) {
    return make_deferred_device<Real>(job, processes, make_kernels(job), seed);
  };
}

/// The same kernels, each done as it is called.
template <class Real>
RankDevice<Real> make_immediate_device(const TrainerJob& job, Communicator& processes) {
  return {.groups = make_groups(processes.split(0), job.plan),
          .lanes = make_host_lanes(),
          .kernels = rounded_kernels<Real>(job),
          .name = "immediate"};
}

TEST_CASE("a step in 16 bits does what the simulator's program says, lane by lane") {
  for (const Cut& cut : cuts) {
    INFO(&cut - cuts.data());
    CHECK(differences<Bfloat16>(gpu_job(cut), make_immediate_device<Bfloat16>) ==
          std::vector<std::string>{});
    TrainerJob half = gpu_job(cut, workloads::Dtype::fp16);
    half.learning.initial_spread = 0.02;
    CHECK(differences<Half>(half, make_immediate_device<Half>) == std::vector<std::string>{});
  }
}

TEST_CASE("no order of the lanes that their waits allow changes a bit of the loss") {
  for (const Cut& cut : cuts) {
    const TrainerJob job = gpu_job(cut);
    const auto in_order = losses<Bfloat16>(job, 4, make_immediate_device<Bfloat16>);
    INFO(&cut - cuts.data());
    for (std::uint32_t seed = 1; seed <= 9; ++seed)
      CHECK(losses<Bfloat16>(job, 4, deferred<Bfloat16>(seed)) == in_order);
  }
}

TEST_CASE("every plan learns in bf16 as one process does in fp32") {
  for (const Cut& cut : cuts) {
    const TrainerJob job = gpu_job(cut);
    const auto wide = losses<float>(on_one_rank(small_job(cut)), 20);
    const auto narrow = losses<Bfloat16>(job, 20, make_immediate_device<Bfloat16>);
    INFO(&cut - cuts.data());
    for (std::size_t step = 0; step < wide.size(); ++step)
      CHECK(narrow[step] == Approx(wide[step]).epsilon(0.03));
    CHECK(narrow.back() < 0.98 * narrow.front());
  }
}

TEST_CASE("a rank in 16 bits allocates what the simulator says, to the byte") {
  for (const Cut& cut : cuts)
    for (const std::int64_t vocab : {32, 256}) {
      TrainerJob job = gpu_job(cut);
      job.model.vocab = vocab;  // a root smaller and larger than a layer
      std::mutex mutex;
      const auto told = [&](std::int64_t stage) {
        Bytes sum{};
        for (const workloads::MemoryPart& part :
             workloads::memory_of_stage(job.model, job.plan, job.batch, job.precision, job.software,
                                        stage)
                 .parts)
          if (part.name != "fixed" && part.name != "scratch") sum += part.bytes;  // of kernels
        return sum;
      };
      on_ranks<Bfloat16>(job, deferred<Bfloat16>(7),
                         [&](Trainer<Bfloat16>& trainer, const auto& data) {
                           trainer.step(data(0));
                           trainer.step(data(1));
                           const std::lock_guard lock(mutex);
                           INFO(&cut - cuts.data() << ", vocabulary " << vocab);
                           CHECK(trainer.allocated() == told(trainer.share().at.pipeline));
                         });
    }
}

TEST_CASE("a step whose scaled gradients are not finite is left out, and the scale is halved") {
  TrainerJob job = gpu_job({.data_degree = 2, .micro_batches = 1}, workloads::Dtype::fp16);
  on_ranks<Half>(job, make_immediate_device<Half>, [&](Trainer<Half>& trainer, const auto& data) {
    TrainerState<Half> state = trainer.state();
    state.scale.value = 0x1p40;  // beyond fp16's range
    const std::vector<float> before(state.weights.begin(), state.weights.end());
    trainer.step(data(0));
    const bool left_out = std::ranges::equal(before, state.weights) && state.steps == 0 &&
                          state.scale.value == 0x1p39;
    state.scale.value = 0x1p8;
    trainer.step(data(0));
    const bool updated = !std::ranges::equal(before, state.weights) && state.steps == 1 &&
                         state.scale.good_steps == 1;
    if (!left_out || !updated) throw std::runtime_error("the scale is not kept");
  });
}

TEST_CASE("fp16 with a scaled loss learns as fp32 does") {
  TrainerJob job = gpu_job({.data = zero3, .data_degree = 2}, workloads::Dtype::fp16);
  TrainerJob wide = small_job({.data = zero3, .data_degree = 2});
  job.learning.initial_spread = wide.learning.initial_spread = 0.1;
  const auto narrow = losses<Half>(job, 40, make_immediate_device<Half>);
  CHECK(narrow.back() == Approx(losses<float>(wide, 40).back()).epsilon(0.1));  // steps left out
}

/// Large enough for the GPU's attention, whose heads have 64 elements.
TrainerJob on_gpu_kernels(TrainerJob job) {
  job.model.layers = 2;
  job.model.hidden = 96;
  job.model.heads = 2;
  job.model.kv_heads = 2;
  job.model.head_dim = 64;
  job.model.ffn_hidden = 80;
  job.model.vocab = 72;
  job.batch.sequence = 24;
  job.batch.micro_batches = 2;
  job.learning.initial_spread = 0.1;
  return job;
}

TEST_CASE("the GPU's kernels, emulated, learn as the host does under every kind of plan") {
  const std::vector<Cut> kinds{{},
                               {.data = zero3, .data_degree = 2},
                               {.tensor = 2, .sequence_parallel = true, .tied = true},
                               {.pipeline = 2, .recompute = Recompute::full}};
  for (const Cut& cut : kinds) {
    const auto wide = losses<float>(on_one_rank(on_gpu_kernels(small_job(cut))), 5);
    const auto narrow = losses<Bfloat16>(on_gpu_kernels(gpu_job(cut)), 5,
                                         deferred<Bfloat16>(3, emulated_kernels<Bfloat16>));
    INFO(&cut - kinds.data());
    for (std::size_t step = 0; step < wide.size(); ++step)
      CHECK(narrow[step] == Approx(wide[step]).epsilon(0.02));
  }
}

TEST_CASE("a V100's kernels, emulated, learn in fp16 with a scaled loss") {
  emulate(EmulatedGpu::v100);
  const Cut cut{.data = zero2, .data_degree = 2};
  TrainerJob job = on_gpu_kernels(gpu_job(cut, workloads::Dtype::fp16));
  const auto wide = losses<float>(on_one_rank(on_gpu_kernels(small_job(cut))), 5);
  const auto narrow = losses<Half>(job, 5, deferred<Half>(4, emulated_kernels<Half>));
  emulate(EmulatedGpu::h100);
  for (std::size_t step = 0; step < wide.size(); ++step)
    CHECK(narrow[step] == Approx(wide[step]).epsilon(0.02));
}

}  // namespace
}  // namespace stepcast::validate
