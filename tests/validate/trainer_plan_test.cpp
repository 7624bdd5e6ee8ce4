#include "validate/trainer_plan.hpp"

#include <catch2/catch.hpp>

#include "calibrate/task_list.hpp"
#include "engine/check.hpp"
#include "tests/validate/trainer_fixtures.hpp"

namespace stepcast::validate {
namespace {

TEST_CASE("the tests train with the software that the catalogue describes") {
  const auto scenarios =
      calibrate::scenarios_in({std::string(STEPCAST_SOURCE_DIR) + "/scenarios/host_circle.toml"});
  REQUIRE(!scenarios.empty());
  workloads::Software told = scenarios.front().software;
  told.launch_kernel = told.launch_collective = told.event_call = Duration{};
  told.unit_overhead = told.step_overhead = Duration{};
  CHECK(told == trainer_software());
  for (const sim::Scenario& scenario : scenarios)
    CHECK_NOTHROW(check(job_of(scenario), "scenario"));
}

TEST_CASE("what the trainer cannot train is refused with what it can") {
  const auto refused = [](auto change) {
    TrainerJob job = small_job();
    change(job);
    CHECK_THROWS_AS(check(job, "scenario.toml:3"), InputError);
  };
  CHECK_NOTHROW(check(small_job(), "scenario.toml:3"));
  refused([](TrainerJob& j) { j.model.norm = workloads::Norm::layernorm; });
  refused([](TrainerJob& j) { j.model.rope = false; });
  refused([](TrainerJob& j) { j.precision.compute = workloads::Dtype::bf16; });
  refused([](TrainerJob& j) { j.plan.data = workloads::DataParallel::zero1; });
  refused([](TrainerJob& j) { j.plan.reduce = workloads::ReduceWhen::each; });
  refused([](TrainerJob& j) { j.plan.tensor = 4; });  // two kv heads
  refused([](TrainerJob& j) { j.plan.pipeline = 5; });
  refused([](TrainerJob& j) { j.software.fusion = workloads::Fusion::eager; });
  refused([](TrainerJob& j) { j.plan.virtual_stages = 2; });
  refused(
      [](TrainerJob& j) { j.plan.data = workloads::DataParallel::zero3, j.plan.data_degree = 3; });
}

TEST_CASE("the shares of all ranks make up the model") {
  TrainerJob job = small_job();
  job.plan.data = workloads::DataParallel::ddp;
  job.plan.tensor = 2;
  job.plan.pipeline = 3;  // four layers: 2, 1, 1
  std::int64_t layers = 0, norms = 0, elements = 0;
  for (std::int64_t rank = 0; rank < job.plan.ranks(); ++rank) {
    const RankShare share(job, rank);
    if (share.at.tensor == 0) CHECK(share.first_layer == layers);
    if (share.at.tensor == 0) layers += share.layers;
    for (std::size_t unit = 0; unit < share.units(); ++unit)
      for (const TensorPart& part : tensors_of_unit(job, share, unit))
        (part.replicated ? norms : elements) += static_cast<std::int64_t>(part.elements());
  }
  CHECK(layers == job.model.layers);
  CHECK(norms / job.plan.tensor + elements == workloads::parameters(job.model));
}

}  // namespace
}  // namespace stepcast::validate
