#include "validate/trainer/model/operations.hpp"

#include <catch2/catch.hpp>

#include "tests/validate/trainer_fixtures.hpp"

namespace stepcast::validate {
namespace {

using enum workloads::DataParallel;
using workloads::Recompute;
using workloads::Schedule;

std::string text_of(const Cut& cut) {
  return "data " + std::to_string(static_cast<int>(cut.data)) + " of " +
         std::to_string(cut.data_degree) + ", tensor " + std::to_string(cut.tensor) +
         (cut.sequence_parallel ? " with sequence" : "") + ", pipeline " +
         std::to_string(cut.pipeline) + ", schedule " +
         std::to_string(static_cast<int>(cut.schedule)) + ", recompute " +
         std::to_string(static_cast<int>(cut.recompute)) + (cut.tied ? ", tied" : "") +
         ", micro-batches " + std::to_string(cut.micro_batches);
}

/// Every data parallelism with every recompute, for the models and batches of `base`.
std::vector<Cut> cuts_of(Cut base) {
  std::vector<Cut> out;
  for (const auto data : {ddp, zero1, zero2, zero3})
    for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full})
      for (const std::int64_t micro_batches : {1, 3}) {
        if (data == ddp && base.shard_degree > 0) continue;
        base.data = data;
        base.recompute = recompute;
        base.micro_batches = micro_batches;
        base.tied = !base.tied;
        out.push_back(base);
      }
  return out;
}

TEST_CASE("a real step does what the simulator's program says, lane by lane") {
  std::vector<Cut> bases{
      {},
      {.data_degree = 2, .tied = true},
      {.tensor = 2},
      {.tensor = 2, .sequence_parallel = true, .tied = true},
      {.pipeline = 4},
      {.data_degree = 2, .tensor = 2, .sequence_parallel = true, .pipeline = 2},
      {.data_degree = 2, .tensor = 2, .pipeline = 2, .schedule = Schedule::gpipe, .tied = true},
      {.data_degree = 4, .shard_degree = 2}};
  for (const Cut& base : bases)
    for (const Cut& cut : cuts_of(base)) {
      INFO(text_of(cut));
      CHECK(differences<float>(small_job(cut), make_host_device<float>) ==
            std::vector<std::string>{});
    }
}

TEST_CASE("a step that leaves the program is told where") {
  TrainerJob job = small_job();
  workloads::StepProgram program =
      workloads::make_step_program(job.model, job.plan, job.batch, job.precision, job.software);
  const auto planned = operations_of(program, 0);
  auto done = planned;
  CHECK(!first_difference(done, planned));
  std::swap(done[3], done[4]);
  CHECK(first_difference(done, planned)->find("operation 3") != std::string::npos);
  done = planned;
  done.pop_back();
  CHECK(first_difference(done, planned)->find("done nothing") != std::string::npos);
  done = planned;
  std::get<workloads::Kernel>(done[0].what).bytes += Bytes(4);
  CHECK(first_difference(done, planned));
}

}  // namespace
}  // namespace stepcast::validate
