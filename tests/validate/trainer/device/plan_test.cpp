#include "validate/trainer/device/plan.hpp"

#include <catch2/catch.hpp>

#include "calibrate/session/task_list.hpp"
#include "engine/check.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"
#include "tests/validate/trainer_fixtures.hpp"
#include "validate/trainer/run/run.hpp"

namespace stepcast::validate {
namespace {

TEST_CASE("the tests train with the software that the catalogue describes") {
  const std::string folder = std::string(STEPCAST_SOURCE_DIR) + "/scenarios/";
  const auto check_software = [](workloads::Software told, const workloads::Software& ours) {
    told.host.launch_kernel = told.host.launch_collective = told.host.event_call = Duration{};
    told.host.unit_overhead = told.host.step_overhead = Duration{};
    CHECK(told == ours);
  };
  const auto check_file = [&](const std::string& name, const workloads::Software& ours) {
    const auto scenarios = calibrate::scenarios_in({folder + name}, catalogue());
    REQUIRE(!scenarios.empty());
    check_software(scenarios.front().software, ours);
    for (const sim::Scenario& scenario : scenarios) CHECK_NOTHROW(check_trainable(scenario));
  };
  check_file("host_circle.toml", trainer_software());
  check_file("h100_validation.toml", gpu_trainer_software());
  const sim::Scenario lanes = sim::read_scenario(
      sim::read_toml("[model]\nname = \"llama2-1b\"\n[cluster]\nnode = \"host\"\n"
                     "[batch]\nlocal = 1\n[software]\nframework = "
                     "\"stepcast-trainer-lanes\"\n",
                     "lanes.toml"),
      catalogue());
  check_software(lanes.software, lanes_trainer_software());
}

TEST_CASE("a device trains with its own software and precision, and no other") {
  const std::string folder = std::string(STEPCAST_SOURCE_DIR) + "/scenarios/";
  sim::Scenario host = calibrate::scenarios_in({folder + "host_circle.toml"}, catalogue()).front();
  sim::Scenario gpu =
      calibrate::scenarios_in({folder + "h100_validation.toml"}, catalogue()).front();
  const auto refused = [](sim::Scenario scenario) {
    CHECK_THROWS_AS(check_trainable(scenario), InputError);
  };
  std::swap(host.software, gpu.software);
  refused(host);
  refused(gpu);
  std::swap(host.software, gpu.software);
  std::swap(host.precision, gpu.precision);
  refused(host);
  refused(gpu);
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
  refused([](TrainerJob& j) { j.precision.compute = workloads::Dtype::tf32; });
  refused([](TrainerJob& j) { j.precision.gradient_reduce = workloads::Dtype::bf16; });
  refused([](TrainerJob& j) { j.precision.loss_scaling = true; });  // without fp16
  refused([](TrainerJob& j) { j.plan.reduce = workloads::ReduceWhen::each; });
  refused([](TrainerJob& j) { j.plan.tensor = 4; });  // two kv heads
  refused([](TrainerJob& j) { j.plan.pipeline = 5; });
  refused([](TrainerJob& j) { j.software.fusion = workloads::Fusion::eager; });
  refused([](TrainerJob& j) { j.plan.context = 2; });
  refused([](TrainerJob& j) {  // an exchange at once, which the host waits for
    j.plan.pipeline = j.plan.virtual_stages = 2;
    j.software.pipeline.interleaved_overlap = false;
  });
  refused([](TrainerJob& j) {
    j.plan.data = workloads::DataParallel::zero1;
    j.software.data.gather_overlap = true;
  });
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
    if (share.at.tensor == 0) CHECK(share.chunks.front().first_layer == layers);
    if (share.at.tensor == 0) layers += static_cast<std::int64_t>(share.layers);
    for (std::size_t unit = 0; unit < share.units(); ++unit)
      for (const TensorPart& part : tensors_of_unit(job, share, unit))
        (part.replicated ? norms : elements) += static_cast<std::int64_t>(part.elements());
  }
  CHECK(layers == job.model.layers);
  CHECK(norms / job.plan.tensor + elements == workloads::parameters(job.model));
}

}  // namespace
}  // namespace stepcast::validate
