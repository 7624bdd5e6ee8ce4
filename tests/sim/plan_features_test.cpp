// Interleaved stages, uneven stages, hsdp and context parallelism from the scenario file to the
// simulated step.
#include <catch2/catch.hpp>
#include <string>

#include "engine/check.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

/// 16 GPUs; a vocabulary so small that the ends of the model cost nothing.
Scenario scenario_of(const std::string& plan, const std::string& software = "") {
  const std::string text =
      "[model]\nname = \"llama2-1b\"\nlayers = 16\nvocab = 128\n"
      "[cluster]\nnode = \"dgx-h100\"\nnodes = 2\n"
      "[batch]\nglobal = 32\nmicro_batch = 1\n[software]\nframework = "
      "\"megatron-core\"\nuse_megatron_fsdp = true\n" +
      software + "[plan]\n" + plan;
  return read_scenario(read_toml(text, "a.toml"), catalogue());
}

std::string refusal(const std::string& plan) {
  try {
    scenario_of(plan);
  } catch (const InputError& error) {
    return error.where() + ": " + error.problem();
  }
  return "accepted";
}

Duration step_of(const std::string& plan, const std::string& software = "") {
  return session().step(scenario_of(plan, software)).step_time;
}

const std::string pipeline = "data = \"ddp\"\ntensor = 2\npipeline = 4\n";

}  // namespace

TEST_CASE("the plan's further degrees are read, resolved and written back") {
  const Scenario s = scenario_of(
      "data = \"zero3\"\ntensor = 2\ncontext = 2\nshard_degree = 2\npipeline = 2\n"
      "virtual_stages = 2\nstage_layers = [3, 4, 5, 4]\n",
      "context_exchange = \"all_gather\"\ninterleaved_overlap = false\n"
      "scatter_gather_p2p = true\n");
  CHECK(s.plan.data_degree == 2);
  CHECK(s.plan.context == 2);
  CHECK(s.plan.shard_replicas() == 2);
  CHECK(s.plan.virtual_stages == 2);
  CHECK(s.plan.stage_layers == std::vector<std::int64_t>{3, 4, 5, 4});
  CHECK(s.software.attention.exchange == workloads::ContextExchange::all_gather);
  const Scenario again = read_scenario(resolved_document(s), catalogue());
  CHECK(again.plan == s.plan);
  CHECK(again.software == s.software);
}

TEST_CASE("what the plan cannot do is refused with file and line") {
  CHECK(refusal(pipeline + "virtual_stages = 5\n") ==
        "a.toml:18: pipeline degree x virtual_stages 20 exceeds the 16 layers of the model");
  CHECK(refusal(pipeline + "stage_layers = [4, 4, 4]\n") ==
        "a.toml:18: stage_layers has 3 numbers");
  CHECK(refusal(pipeline + "stage_layers = [4, 4, \"x\", 4]\n") ==
        "a.toml:18: 'stage_layers' in [plan] must be an array of whole numbers");
  CHECK(refusal(pipeline + "context = 3\n") ==
        "a.toml:18: tensor 2 x pipeline 4 x context 3 does not divide the 16 GPUs");
  CHECK(refusal("data = \"zero3\"\nshard_degree = 3\n") ==
        "a.toml:16: shard_degree 3 does not divide data x context degree 16");
}

TEST_CASE("v chunks divide the pipeline's idle time (p-1)(F+B) by v where nothing else costs") {
  const auto idle = [](std::int64_t chunks) {
    Scenario s = scenario_of(
        "data = \"ddp\"\npipeline = 4\nvirtual_stages = " + std::to_string(chunks) + "\n",
        "host_factor = 0.001\nlaunch_kernel = \"1 ns\"\nlaunch_collective = \"1 ns\"\nevent_call = "
        "\"1 ns\"\n"
        "step_overhead = \"1 ns\"\npipeline_sync = false\n");
    s.run.without = {.interference = true, .latency = true, .bandwidth = true};
    const StepReport report = session().step(s);
    const double micro_batches = 8.0, stages = 4.0;
    const double expected =
        (stages - 1.0) / (micro_batches * static_cast<double>(chunks)) * seconds(report.compute);
    return seconds(report.bubble + report.wait) / expected;
  };
  // What is left: the optimizer is no part of the pipeline, and the ends of the model are not free.
  for (const std::int64_t chunks : {1, 2, 4}) CHECK(idle(chunks) == Approx(1.0).epsilon(0.07));
}

TEST_CASE("exchanges beside compute are no slower than those that stop the host") {
  const std::string plan = pipeline + "virtual_stages = 2\n";
  CHECK(step_of(plan) < step_of(plan, "interleaved_overlap = false\n"));
}

TEST_CASE("the longest stage sets the pace") {
  const Duration even = step_of(pipeline + "stage_layers = [4, 4, 4, 4]\n");
  CHECK(even == step_of(pipeline));
  CHECK(step_of(pipeline + "stage_layers = [3, 4, 5, 4]\n") > even);
}

TEST_CASE("one chunk, one context rank and shards over all ranks are what they were") {
  CHECK(step_of(pipeline + "virtual_stages = 1\ncontext = 1\n") == step_of(pipeline));
  CHECK(step_of("data = \"zero3\"\nshard_degree = 16\n") == step_of("data = \"zero3\"\n"));
}

TEST_CASE("ranks fold under every new kind of group, to the same picosecond") {
  for (const std::string& plan :
       {pipeline + "virtual_stages = 4\n", pipeline + "context = 2\n",
        pipeline + "context = 2\nvirtual_stages = 2\nsequence_parallel = true\n",
        // Two stages send to each other: each is the sender of one pair with the same members.
        std::string("data = \"zero1\"\ntensor = 2\npipeline = 2\nvirtual_stages = 2\n"),
        std::string("data = \"zero3\"\nshard_degree = 8\n"),
        std::string("data = \"zero2\"\nshard_degree = 2\ncontext = 4\n"),
        std::string("data = \"zero1\"\nshard_degree = 4\ntensor = 2\n")}) {
    INFO(plan);
    for (const std::string exchange : {"ring", "all_gather", "all_to_all"}) {
      Scenario s = scenario_of(plan, "context_exchange = \"" + exchange + "\"\n");
      s.run.check_fold = true;
      CHECK_NOTHROW(session().step(s));
      if (s.plan.context == 1) break;
    }
  }
}

}  // namespace stepcast::sim
