#include "validate/trainer/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "sim/tables/column_file.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"
#include "validate/trainer/run/checkpoint.hpp"
#include "validate/trainer/run/results.hpp"

namespace stepcast::validate {
namespace {

namespace fs = std::filesystem;

sim::Scenario tiny(const std::string& more) {
  const std::string text = R"([model]
name = "tiny"
layers = 2
hidden = 32
heads = 2
kv_heads = 2
head_dim = 16
ffn_hidden = 48
vocab = 64
norm = "rmsnorm"
activation = "swiglu"
rope = true
sequence = 16
[cluster]
node = "host"
[batch]
local = 2
[precision]
compute = "fp32"
gradient_reduce = "fp32"
[software]
framework = "stepcast-trainer"
)";
  return sim::read_scenario(sim::read_toml(text + more, "tiny.toml"), catalogue());
}

TrainerResults train(const sim::Scenario& scenario, const RunSettings& settings) {
  TrainerResults results;
  run_ranks(scenario.plan.ranks(), [&](std::unique_ptr<Communicator> world) {
    if (auto mine = run_trainer(scenario, settings, std::move(world))) results = *std::move(mine);
  });
  return results;
}

}  // namespace

TEST_CASE("a run reports every step's loss and the time of every operation of every rank") {
  for (const char* plan : {"data = \"zero2\"\n", "tensor = 2\n", "pipeline = 2\n"}) {
    INFO(plan);
    const sim::Scenario scenario = tiny(std::string("[plan]\n") + plan);
    RunSettings settings;
    settings.steps = 12;
    settings.warm_up = 2;
    const TrainerResults results = train(scenario, settings);
    CHECK(results.ranks == 2);
    REQUIRE(results.losses.size() == 12);
    CHECK(results.losses.back() < results.losses.front());
    CHECK(results.step_times.size() == 10);
    CHECK(results.timeline.ranks.size() == 2);
    // What a rank did is not longer than the step, by the clocks' own words.
    const StepParts parts = parts_of(results.timeline);
    CHECK(parts.compute > Duration{});
    CHECK(parts.exposed_total() > Duration{});
    CHECK(parts.compute + parts.exposed_total() + parts.wait + parts.bubble <=
          results.step_time + results.step_time / 10);
    double gemms = 0.0;
    for (const PartTime& part : results.parts) gemms += part.kind == "gemm" ? part.calls : 0.0;
    // 7 products a layer and the head's, each forward, dgrad, wgrad; a stage has half of them.
    const std::int64_t micro = scenario.batch.micro_batches;
    const double stages = static_cast<double>(scenario.plan.pipeline);
    CHECK(gemms == 3.0 * (2 * 7 + 1) * static_cast<double>(micro) / stages);
  }
}

TEST_CASE("a run resumed from a checkpoint has the losses of one that was not cut") {
  const fs::path folder = tests::own_folder() / "stepcast_resume_test";
  for (const char* plan : {"data = \"ddp\"\n", "data = \"zero3\"\n", "pipeline = 2\n"}) {
    INFO(plan);
    fs::remove_all(folder);
    const sim::Scenario scenario = tiny(std::string("[plan]\n") + plan);
    RunSettings settings;
    settings.steps = 9;
    settings.warm_up = 1;
    const std::vector<double> whole = train(scenario, settings).losses;
    settings.steps = 4;
    settings.checkpoint = folder.string();
    std::vector<double> cut = train(scenario, settings).losses;
    settings.steps = 5;
    settings.resume = true;
    const TrainerResults rest = train(scenario, settings);
    CHECK(rest.first_step == 4);
    cut.insert(cut.end(), rest.losses.begin(), rest.losses.end());
    CHECK(cut == whole);
  }
  fs::remove_all(folder);
}

/// The same with experts in the place of the MLP, and ranks that share them.
sim::Scenario tiny_experts(const std::string& plan, std::int64_t degree) {
  sim::Scenario scenario = tiny("[plan]\n" + plan);
  scenario.model.experts.count = 4;
  scenario.model.experts.per_token = 2;
  scenario.model.experts.ffn = 24;
  scenario.model.experts.dense_layers = 1;
  scenario.plan.expert.degree = degree;
  return scenario;
}

TEST_CASE("a run of experts is timed by its calls, and goes on from a checkpoint of them") {
  const fs::path folder = tests::own_folder() / "stepcast_experts_test";
  for (const char* data : {"data = \"ddp\"\n", "data = \"zero1\"\n"}) {
    INFO(data);
    fs::remove_all(folder);
    const sim::Scenario scenario = tiny_experts(data, 2);
    RunSettings settings;
    settings.steps = 6;
    settings.warm_up = 1;
    const TrainerResults whole = train(scenario, settings);
    CHECK(whole.losses.back() < whole.losses.front());
    const auto has = [&](const char* name) {
      return std::ranges::any_of(whole.parts, [&](const PartTime& p) { return p.name == name; });
    };
    CHECK(has("layer.experts.dispatch.forward"));
    CHECK(has("layer.experts.gate.dgrad"));
    settings.steps = 4;
    settings.checkpoint = folder.string();
    std::vector<double> cut = train(scenario, settings).losses;
    sim::Scenario other = scenario;
    other.model.experts.dense_layers = 0;
    settings.steps = 2;
    settings.resume = true;
    CHECK_THROWS_WITH(train(other, settings), Catch::Contains("another model or plan"));
    const TrainerResults rest = train(scenario, settings);
    cut.insert(cut.end(), rest.losses.begin(), rest.losses.end());
    CHECK(cut == whole.losses);
  }
  fs::remove_all(folder);
}

TEST_CASE("a GPU trains no experts") {
  sim::Scenario scenario = tiny_experts("data = \"ddp\"\n", 1);
  CHECK_NOTHROW(check_trainable(scenario));
  scenario.node.gpu.architecture.host = false;
  CHECK_THROWS_WITH(check_trainable(scenario), Catch::Contains("layers of experts"));
}

TEST_CASE("results read back as they were written") {
  RunSettings settings;
  settings.steps = 3;
  settings.warm_up = 1;
  const TrainerResults results = train(tiny("[plan]\ndata = \"ddp\"\n"), settings);
  const std::string path = (tests::own_folder() / "stepcast_results_test.json").string();
  write_results(path, results);
  const TrainerResults again = read_results(path);
  CHECK(again.losses == results.losses);
  CHECK(seconds(again.step_time) == Approx(seconds(results.step_time)));
  CHECK(again.parts.size() == results.parts.size());
  CHECK(again.buffers == results.buffers);
  fs::remove(path);
  CHECK_THROWS_AS(read_results(path), InputError);
  CHECK_THROWS_AS(write_results("/dev/full", results), InputError);
}

TEST_CASE("what is not a model to train is refused before any rank starts") {
  CHECK_THROWS_AS(check_trainable(sim::read_scenario(
                      sim::read_toml("[model]\nname = \"gpt2-xl\"\n[cluster]\nnode = \"host\"\n"
                                     "[batch]\nlocal = 1\n",
                                     "gpt.toml"),
                      catalogue())),
                  InputError);
}

TEST_CASE("training that leaves the finite numbers ends with a word, and saves nothing") {
  const fs::path folder = tests::own_folder() / "stepcast_diverged_test";
  fs::remove_all(folder);
  const sim::Scenario scenario = tiny("[plan]\ndata = \"ddp\"\n");
  RunSettings settings;
  settings.steps = 2;
  settings.warm_up = 0;
  settings.checkpoint = folder.string();
  train(scenario, settings);
  // Weights as a divergence leaves them, every one still a number.
  run_ranks(2, [&](std::unique_ptr<Communicator> world) {
    const auto file = sim::read_columns(
        (folder / fmt::format("step-00000002/rank-{:04}-of-0002.h5", world->rank())).string());
    const KeptJob job{file->text_attribute("/", "job"), file->text_attribute("/", "scenario")};
    std::vector<float> state[3];
    for (int i = 0; i < 3; ++i) {
      const char* const names[] = {"/weights", "/first_moments", "/second_moments"};
      for (const double value : file->doubles(names[i]))
        state[i].push_back(static_cast<float>(i == 0 ? value * 1e37 : value));
    }
    save_checkpoint(folder.string(), job, 2, {state[0], state[1], state[2]}, *world);
  });
  settings.resume = true;
  CHECK_THROWS_WITH(train(scenario, settings),
                    Catch::Contains("the loss of step 3 is") && Catch::Contains("diverged"));
  CHECK(fs::exists(folder / "step-00000002"));
  CHECK_FALSE(fs::exists(folder / "step-00000004"));
  fs::remove_all(folder);
}

}  // namespace stepcast::validate
