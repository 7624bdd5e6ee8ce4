// [precision] with a recipe of low precision: what is read, what a GPU makes of it, what is
// refused.
#include <catch2/catch.hpp>
#include <string>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/without_effect.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;
using workloads::Recipe;

namespace {

Scenario read(const std::string& node, const std::string& precision,
              const std::string& framework = "megatron-core", const std::string& data = "zero1") {
  static const Catalogue shipped(STEPCAST_SOURCE_DIR "/scenarios");
  const std::string text =
      "[model]\nname = \"llama3-8b\"\nsequence = 4096\n[cluster]\nnode = \"" + node +
      "\"\nnodes = 1\n[plan]\ndata = \"" + data + "\"\n[batch]\nlocal = 2\nmicro_batch = 1\n" +
      "[software]\nframework = \"" + framework + "\"\n[precision]\n" + precision;
  return read_scenario(read_toml(text, "a.toml"), shipped);
}

std::string refusal(const std::string& node, const std::string& precision,
                    const std::string& framework = "megatron-core",
                    const std::string& data = "zero1") {
  try {
    read(node, precision, framework, data);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a recipe is read, and what its operands need follows from the GPU") {
  const Scenario hopper = read("dgx-h100", "recipe = \"fp8_block\"\nbf16_first_layers = 1\n");
  CHECK(hopper.precision.recipe == Recipe::fp8_block);
  CHECK(hopper.precision.bf16_first_layers == 1);
  CHECK(hopper.precision.transposes);
  CHECK_FALSE(hopper.precision.emulates_blocks);
  const Scenario blackwell = read("dgx-b200", "recipe = \"fp8_block\"\nmoments = \"bf16\"\n");
  CHECK_FALSE(blackwell.precision.transposes);
  CHECK(blackwell.precision.emulates_blocks);
  CHECK(blackwell.precision.moments == workloads::Dtype::bf16);
  CHECK(read("dgx-h100", "compute = \"bf16\"\n").precision == workloads::Precision{});
}

TEST_CASE("a recipe before its GPU, framework or data parallelism is refused by name") {
  CHECK_THAT(refusal("dgx-h100", "recipe = \"mxfp8\"\n"),
             Contains("a.toml:15: h100-sxm5-80gb cannot run recipe \"mxfp8\"") &&
                 Contains("came with Blackwell"));
  CHECK_THAT(refusal("dgx-h200", "recipe = \"nvfp4\"\n"), Contains("\"nvfp4\""));
  CHECK_THAT(refusal("dgx-a100", "recipe = \"fp8_delayed\"\n"),
             Contains("a100-sxm4-80gb cannot run recipe \"fp8_delayed\"") &&
                 Contains("from Ada and Hopper on"));
  CHECK_THAT(refusal("dgx-h100", "recipe = \"fp8_delayed\"\n", "deepspeed"),
             Contains("deepspeed 0.18 has no recipe \"fp8_delayed\"") && Contains("torchtitan"));
  CHECK_THAT(refusal("dgx-h100", "recipe = \"fp8_delayed\"\n", "torchtitan", "zero2"),
             Contains("it has fp8_current"));
  CHECK_THAT(refusal("dgx-h100", "compute = \"fp16\"\nrecipe = \"fp8_current\"\n"),
             Contains("activations that are not bf16"));
  CHECK_THAT(refusal("dgx-h100", "recipe = \"fp8_current\"\nfp8_parameters = true\n",
                     "megatron-core", "ddp"),
             Contains("fp8_parameters with data = \"ddp\""));
  CHECK_THAT(refusal("dgx-h100", "moments = \"bf16\"\n", "pytorch-fsdp2", "zero2"),
             Contains("keeps no moments in bf16"));
  CHECK_THAT(refusal("dgx-h100", "recipe = \"fp8\"\n"), Contains("fp8_delayed"));
}

TEST_CASE("keys of a recipe that is not on are named") {
  const auto warnings = without_effect(
      read("dgx-h100", "bf16_first_layers = 2\nbf16_last_layers = 1\nfp8_parameters = true\n"));
  REQUIRE(warnings.size() == 3);
  for (const std::string& warning : warnings)
    CHECK_THAT(warning, Contains("no recipe of low precision is on"));
}

TEST_CASE(
    "what a host's calls take has no effect where one graph launches the step, and is named") {
  const auto warnings = [](workloads::Graphs graphs) {
    Scenario s = read("dgx-h100", "");
    s.software.host.graphs = graphs;
    s.measured_launch = true;
    s.changed = {"calibration.launch", "software.forward_call"};
    return without_effect(s);
  };
  CHECK(warnings(workloads::Graphs::none).empty());
  const auto named = warnings(workloads::Graphs::iteration);
  REQUIRE(named.size() == 2);
  CHECK(named[0] ==
        "calibration.launch has no effect here: one graph launches all of the step (cuda_graphs)");
}
