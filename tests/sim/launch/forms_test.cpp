// What single forms say.
#include "sim/launch/forms.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "sim/inputs/document.hpp"
#include "sim/inputs/launch_file.hpp"
#include "tests/sim/launch/launch_plans.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

TEST_CASE("Megatron-Bridge is given its own recipe, or one that is written for the model") {
  const auto of = [](const std::string& model, const std::string& version,
                     const std::string& plan = "") {
    return launch_of(
        scenario("[model]\nname = \"" + model +
                 "\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\nnodes = 8\n"
                 "[plan]\ndata = \"zero1\"\n" +
                 plan + "[batch]\nglobal = 64\n[software]\nframework = \"nemo\"\nversion = \"" +
                 version + "\"\n"));
  };
  const Launch named = of("qwen3-8b", "26.06");
  REQUIRE(named.files.size() == 1);
  CHECK_THAT(named.files[0].use, Contains("run_recipe.py --recipe qwen3_8b_pretrain_config $(cat"));
  CHECK(missing(named.files[0], {"dataset.sequence_length=4096", "model.seq_length=4096"}) ==
        None{});
  const Launch old = of("qwen3-8b", "25.11");  // before there was such a script
  REQUIRE(old.files.size() == 2);
  CHECK(missing(old.files[0], {"dataset.sequence_length=4096"}) == None{});
  CHECK_THAT(old.files[1].text,
             Contains("from megatron.bridge.recipes.qwen import qwen3_8b_pretrain_config\n"));
  CHECK_THAT(of("kimi-k2", "25.11").why_not, Contains("has no recipe of kimi-k2"));
  const Launch olmo = of("Olmo-3-1025-7B", "26.06");
  REQUIRE(olmo.files.size() == 2);
  for (const char* line : {"self_attention=ModuleSpec(\n                module=OLMoESelfAttention",
                           "window_size=(4095, 0),", "window_attn_skip_freq=4,",
                           "transformer_layer_spec=layers_with_norms_behind,"})
    CHECK_THAT(olmo.files[1].text, Contains(line));
  CHECK_THAT(of("Olmo-3-1025-7B", "26.06", "tensor = 2\n").why_not, Contains("tensor = 1"));
  CHECK_THAT(of("mixtral-8x7b", "26.06").files.at(1).text, Contains("moe_router_topk=2,"));
}

TEST_CASE("torchtitan's TOML names models and flavors as its release has them") {
  const auto of = [](const std::string& model, const std::string& version) {
    return launch_of(scenario("[model]\nname = \"" + model +
                              "\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\nnodes = 64\n"
                              "[plan]\ndata = \"zero3\"\n[batch]\nglobal = 512\n[software]\n"
                              "framework = \"torchtitan\"\nversion = \"" +
                              version + "\"\n"));
  };
  const auto unknown = [](const Launch& launch) {
    return std::ranges::any_of(launch.notes, [](const std::string& note) {
      return note.find("must be made known") != std::string::npos;
    });
  };
  const Launch scout = of("llama4-scout", "2025");
  CHECK(missing(scout.files.at(0), {"name = \"llama4\"", "flavor = \"17bx16e\""}) == None{});
  CHECK(!unknown(scout));
  CHECK(!unknown(of("llama3-70b", "2024")));
  for (const char* model : {"kimi-k2", "llama2-70b", "llama3.2-3b"})
    CHECK(unknown(of(model, "2025")));
  CHECK(unknown(of("qwen3-8b", "2024")));
}

TEST_CASE("what a script of Megatron says of a plan is all in the file that is written for it") {
  const std::vector<std::string> said = {"--tensor-model-parallel-size 2",
                                         "--sequence-parallel",
                                         "--pipeline-model-parallel-size 2",
                                         "--context-parallel-size 2",
                                         "--cp-comm-type a2a",
                                         "--num-virtual-stages-per-pipeline-rank 2",
                                         "--expert-model-parallel-size 4",
                                         "--expert-tensor-parallel-size 1",
                                         "--moe-token-dispatcher-type flex",
                                         "--moe-flex-dispatcher-backend hybridep",
                                         "--moe-permute-fusion",
                                         "--moe-router-fusion",
                                         "--moe-router-force-load-balancing",
                                         "--micro-batch-size 1",
                                         "--global-batch-size 64",
                                         "--use-distributed-optimizer",
                                         "--overlap-grad-reduce",
                                         "--overlap-param-gather",
                                         "--recompute-granularity selective",
                                         "--recompute-modules layernorm moe_act",
                                         "--bf16",
                                         "--accumulate-allreduce-grads-in-fp32",
                                         "--fp8-format hybrid",
                                         "--fp8-recipe tensorwise",
                                         "--fp8-param-gather",
                                         "--use-precision-aware-optimizer",
                                         "--exp-avg-dtype bf16",
                                         "--exp-avg-sq-dtype bf16",
                                         "--first-last-layers-bf16",
                                         "--num-layers-at-start-in-bf16 1",
                                         "--num-layers-at-end-in-bf16 2",
                                         "--cross-entropy-loss-fusion",
                                         "--qk-layernorm",
                                         "--num-experts 8",
                                         "--moe-router-topk 2"};
  std::string text =
      "--num-layers 8\n--hidden-size 2048\n--num-attention-heads 16\n--kv-channels 128\n"
      "--group-query-attention\n--num-query-groups 8\n--seq-length 4096\n--swiglu\n"
      "--max-position-embeddings 4096\n--vocab-size 32000\n--moe-ffn-hidden-size 768\n"
      "--normalization RMSNorm\n--disable-bias-linear\n--position-embedding-type rope\n"
      "--untie-embeddings-and-output-weights\n--attention-dropout 0.0\n--hidden-dropout 0.0\n";
  for (const std::string& line : said) text += line + "\n";
  const NamedText file{"megatron.args", text};
  const auto input = read_launch_files({&file, 1}, catalogue());
  REQUIRE(input);
  CHECK(input->understanding.unknown == None{});
  TomlValue document = facts_document(input->facts, "megatron.args");
  set_path(document, "cluster.node", toml_text("dgx-h100", "--gpu"));
  set_path(document, "cluster.nodes", {std::int64_t{4}, "--nodes"});
  complete_machine(document, input->facts, catalogue());
  const Launch launch = launch_of(read_scenario(document, catalogue()));
  CHECK(launch.why_not == "");
  REQUIRE(launch.files.size() == 1);
  for (const std::string& line : said) CHECK_THAT(launch.files[0].text, Contains(line + "\n"));
}

TEST_CASE("DeepSpeed's JSON names the optimizers that its engine makes but for Adam") {
  const auto type = [](const std::string& form) {
    const Launch launch =
        launch_of(large("deepspeed", "data = \"zero2\"\noptimizer = \"" + form + "\"\n"));
    const auto json = nlohmann::json::parse(launch.files.at(0).text);
    const bool noted = std::ranges::any_of(launch.notes, [](const std::string& note) {
      return note.find("plan.optimizer") != std::string::npos;
    });
    const bool written = json.contains("optimizer");
    return (written ? json["optimizer"]["type"].get<std::string>() : "") + (noted ? " noted" : "");
  };
  CHECK(type("adam").empty());
  CHECK(type("sgd") == "SGD");
  CHECK(type("adam_8bit") == " noted");
}
