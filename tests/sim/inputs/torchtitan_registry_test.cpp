// Registries of torchtitan of 2026: functions that start from others, models of theirs.
#include "engine/check.hpp"
#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

LaunchInput function_of(const std::string& body, const std::string& name) {
  return input_of("from torchtitan.models.qwen3 import model_registry\n\n\n" + body,
                  "config_registry.py#" + name);
}

const std::string base =
    "def large() -> Trainer.Config:\n"
    "    return Trainer.Config(\n"
    "        model_spec=model_registry(\"30B-A3B\"),\n"
    "        training=TrainingConfig(max_context_length=4096,\n"
    "                                num_tokens_per_microbatch_per_dp_rank=8192),\n"
    "        parallelism=ParallelismConfig(tensor_parallel_degree=2, expert_parallel_degree=8),\n"
    "    )\n\n\n";
const std::string other =
    "def other() -> Trainer.Config:\n"
    "    config = large()\n"
    "    config.parallelism = ParallelismConfig(tensor_parallel_degree=4)\n"
    "    return config\n\n\n";

}  // namespace

TEST_CASE("a function may start from one below it, and a part that it replaces is gone") {
  for (const std::string& text : {base + other, other + base}) {
    const LaunchInput input = function_of(text, "other");
    CHECK(text_of(input.facts, "model.name") == "\"qwen3-30b-a3b\"");
    CHECK(text_of(input.facts, "model.sequence") == "4096");
    CHECK(input.facts.integer("plan.tensor") == 4);
    CHECK(input.facts.integer("plan.expert").value_or(1) == 1);
  }
  CHECK_THROWS_WITH(function_of(base, "none_such"),
                    Contains("has no function none_such") && Contains("large"));
}

TEST_CASE("experts on ranks of their own are not cut between tensor ranks") {
  CHECK(function_of(base, "large").facts.integer("plan.expert_tensor") == 1);
  CHECK(scenario_of(function_of(base + other, "other"), 2).plan.expert_tensor() == 4);
}

TEST_CASE("a command that names a function of qwen3_5 has its plan and a head of its own") {
  const LaunchInput input = input_of(
      "MODULE=qwen3_5 CONFIG=qwen35_4b NGPU=8 ./run_train.sh --training.steps 10\n", "run.sh");
  const Scenario s = scenario_of(input, 1);
  CHECK(s.model.name == "Qwen/Qwen3.5-4B");
  CHECK_FALSE(s.model.tied_embeddings);
  CHECK(s.plan.recompute == workloads::Recompute::full);
  CHECK(says(input.facts.notes, "The encoder of images is not forecast"));
}

TEST_CASE("its models for trying things out have the sizes of its sources") {
  const auto flavor = [](const std::string& module, const std::string& name) {
    const LaunchInput input = input_of("from torchtitan.models." + module +
                                           " import model_registry\n\n\ndef small():\n"
                                           "    return Trainer.Config(\n"
                                           "        model_spec=model_registry(\"" +
                                           name +
                                           "\"),\n        training=TrainingConfig("
                                           "max_context_length=512),\n    )\n",
                                       "torchtitan/models/" + module + "/config_registry.py#small");
    return scenario_of(input, 1).model;
  };
  CHECK(workloads::parameters(flavor("llama3", "debugmodel")) ==
        2 * 2048 * 256 + 6 * (4 * 256 * 256 + 3 * 256 * 768 + 2 * 256) + 256);
  const workloads::TransformerShape experts = flavor("qwen3", "debugmodel_moe");
  CHECK(experts.experts.count == 64);
  CHECK(experts.ffn_hidden == 0);
  CHECK(experts.layers == 8);
  CHECK(flavor("deepseek_v3", "debugmodel").latent.kv_rank == 512);
  CHECK(flavor("gpt_oss", "debugmodel").experts.count == 8);
  CHECK(flavor("qwen3_5", "debugmodel").heads == 4);
}
