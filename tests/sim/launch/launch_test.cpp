#include "sim/launch/launch.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/sim/launch/launch_plans.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

// NVIDIA/Megatron-LM, examples/gpt3/train_gpt3_175b_distributed.sh at 157006d6: GPT_MODEL_ARGS,
// TRAINING_ARGS and MODEL_PARALLEL_ARGS, of which a scenario can say these.
TEST_CASE("the arguments of Megatron-LM's script for 175B are those of the same plan") {
  const Launch launch = launch_of(scenario(
      "[model]\nname = \"gpt3-175b\"\nsequence = 2048\n[cluster]\nnode = \"dgx-h100\"\nnodes = 16\n"
      "[plan]\ndata = \"ddp\"\ntensor = 8\npipeline = 16\n[batch]\nglobal = 1536\nmicro_batch = 1\n"
      "[precision]\ncompute = \"fp16\"\ngradient_reduce = \"fp16\"\n"
      "[software]\nframework = \"megatron-core\"\n"));
  REQUIRE(launch.files.size() == 1);
  CHECK(missing(launch.files[0],
                {"--num-layers 96", "--hidden-size 12288", "--num-attention-heads 96",
                 "--seq-length 2048", "--max-position-embeddings 2048", "--micro-batch-size 1",
                 "--global-batch-size 1536", "--fp16", "--tensor-model-parallel-size 8",
                 "--pipeline-model-parallel-size 16"}) == None{});
  for (const char* absent : {"--sequence-parallel", "--use-distributed-optimizer", "--recompute",
                             "--num-layers-per-virtual", "--swiglu", "--bf16", "--accumulate"})
    CHECK_THAT(launch.files[0].text, !Contains(absent));
  CHECK_THAT(launch.files[0].use, StartsWith("CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nnodes 16 "
                                             "--nproc-per-node 8 "));  // the script exports it
}

// NVIDIA/Megatron-LM, examples/llama/train_llama3_8b_h100_fp8.sh at 157006d6: MODEL_ARGS,
// TRAINING_ARGS, MODEL_PARALLEL_ARGS and DDP_ARGS without fp8, and --sequence-parallel, which does
// nothing with one tensor rank.
TEST_CASE("the arguments of Megatron-LM's script for Llama-3 8B are those of the same plan") {
  const Launch launch = launch_of(scenario(
      "[model]\nname = \"llama3-8b\"\nsequence = 8192\n[cluster]\nnode = \"dgx-h100\"\nnodes = 1\n"
      "[plan]\ndata = \"zero1\"\n[batch]\nglobal = 128\nmicro_batch = 1\n[software]\n"
      "framework = \"megatron-core\"\ngradient_overlap = true\ngather_overlap = true\n"));
  REQUIRE(launch.files.size() == 1);
  CHECK(missing(launch.files[0], {"--num-layers 32",
                                  "--hidden-size 4096",
                                  "--ffn-hidden-size 14336",
                                  "--num-attention-heads 32",
                                  "--group-query-attention",
                                  "--num-query-groups 8",
                                  "--kv-channels 128",
                                  "--seq-length 8192",
                                  "--max-position-embeddings 8192",
                                  "--position-embedding-type rope",
                                  "--attention-dropout 0.0",
                                  "--hidden-dropout 0.0",
                                  "--swiglu",
                                  "--untie-embeddings-and-output-weights",
                                  "--disable-bias-linear",
                                  "--vocab-size 128256",
                                  "--micro-batch-size 1",
                                  "--global-batch-size 128",
                                  "--bf16",
                                  "--tensor-model-parallel-size 1",
                                  "--context-parallel-size 1",
                                  "--use-distributed-optimizer",
                                  "--overlap-grad-reduce",
                                  "--overlap-param-gather"}) == None{});
  CHECK(launch.notes == None{});
}

// pytorch/torchtitan, torchtitan/models/llama3/train_configs/llama3_70b.toml at 038d5fd1, "a preset
// for 64 A100 GPUs": data_parallel_shard_degree = -1 is what tensor ranks leave, 64 / 8.
TEST_CASE("the keys of torchtitan's preset for 70B are those of the same plan") {
  const Launch launch = launch_of(scenario(
      "[model]\nname = \"llama3-70b\"\nsequence = 8192\n[cluster]\nnode = \"dgx-a100\"\nnodes = 8\n"
      "[plan]\ndata = \"zero3\"\ntensor = 8\nsequence_parallel = true\nrecompute = \"full\"\n"
      "[batch]\nglobal = 64\nmicro_batch = 8\n[software]\nframework = \"torchtitan\"\n"
      "version = \"2025\"\nfusion = \"eager\"\n"));
  REQUIRE(launch.files.size() == 1);
  CHECK(missing(launch.files[0],
                {"name = \"llama3\"", "flavor = \"70B\"", "local_batch_size = 8", "seq_len = 8192",
                 "data_parallel_replicate_degree = 1", "data_parallel_shard_degree = 8",
                 "tensor_parallel_degree = 8", "pipeline_parallel_degree = 1",
                 "context_parallel_degree = 1", "mode = \"full\"", "enable = false"}) == None{});
  CHECK(launch.notes == None{});
}

// microsoft/Megatron-DeepSpeed, examples_deepspeed/pretrain_llama2_distributed.sh at b644fba3: the
// arguments and the configuration that it writes, 8 GPUs.
TEST_CASE("arguments and configuration of Megatron-DeepSpeed's script are those of the same plan") {
  const Launch launch = launch_of(scenario(
      "[model]\nname = \"llama2-7b\"\nsequence = 2048\nlayers = 24\nhidden = 2048\n"
      "ffn_hidden = 5504\nheads = 16\nkv_heads = 4\nhead_dim = 128\n"
      "[cluster]\nnode = \"dgx-h100\"\nnodes = 1\n"
      "[plan]\ndata = \"ddp\"\ntensor = 2\npipeline = 2\n[batch]\nglobal = 32\nmicro_batch = 4\n"
      "[precision]\ncompute = \"bf16\"\ngradient_reduce = \"bf16\"\n"
      "[software]\nframework = \"megatron-deepspeed\"\n"));
  REQUIRE(launch.files.size() == 2);
  CHECK(missing(launch.files[0], {"--tensor-model-parallel-size 2",
                                  "--pipeline-model-parallel-size 2",
                                  "--num-layers 24",
                                  "--hidden-size 2048",
                                  "--ffn-hidden-size 5504",
                                  "--num-attention-heads 16",
                                  "--micro-batch-size 4",
                                  "--global-batch-size 32",
                                  "--seq-length 2048",
                                  "--bf16",
                                  "--attention-dropout 0.0",
                                  "--hidden-dropout 0.0",
                                  "--use-rotary-position-embeddings",
                                  "--untie-embeddings-and-output-weights",
                                  "--swiglu",
                                  "--normalization rmsnorm",
                                  "--disable-bias-linear",
                                  "--num-key-value-heads 4",
                                  "--deepspeed",
                                  "--zero-stage 0"}) == None{});
  const auto config = nlohmann::json::parse(launch.files[1].text);
  CHECK(config["train_batch_size"] == 32);
  CHECK(config["train_micro_batch_size_per_gpu"] == 4);
  CHECK(config["zero_optimization"]["stage"] == 0);
  CHECK(config["bf16"]["enabled"] == true);
  CHECK_FALSE(config.contains("activation_checkpointing"));  // activation_checkpoint="false"
}

// NVIDIA/NeMo-Megatron-Launcher, launcher_scripts/conf/training/gpt3/175b.yaml at 0c6c960d.
TEST_CASE("the keys of NeMo's recipe for 175B are those of the same plan") {
  const Launch launch =
      launch_of(scenario("[model]\nname = \"gpt3-175b\"\nsequence = 2048\n[cluster]\nnode = "
                         "\"dgx-h100\"\nnodes = 128\n"
                         "[plan]\ndata = \"zero1\"\ntensor = 4\npipeline = 8\nvirtual_stages = 12\n"
                         "sequence_parallel = true\n[batch]\nglobal = 2048\nmicro_batch = 1\n"
                         "[software]\nframework = \"nemo\"\nversion = \"2023\"\n"));
  REQUIRE(launch.files.size() == 1);
  CHECK(missing(launch.files[0], {"  num_nodes: 128",
                                  "  devices: 8",
                                  "  precision: bf16",
                                  "  micro_batch_size: 1",
                                  "  global_batch_size: 2048",
                                  "  context_parallel_size: 1",
                                  "  tensor_model_parallel_size: 4",
                                  "  pipeline_model_parallel_size: 8",
                                  "  virtual_pipeline_model_parallel_size: 12",
                                  "  encoder_seq_length: 2048",
                                  "  max_position_embeddings: 2048",
                                  "  num_layers: 96",
                                  "  hidden_size: 12288",
                                  "  num_attention_heads: 96",
                                  "  sequence_parallel: true",
                                  "  activations_checkpoint_granularity: null",
                                  "    name: distributed_fused_adam",
                                  "    bucket_cap_mb: 220",
                                  "    overlap_grad_sync: true",
                                  "    overlap_param_sync: true"}) == None{});
}

TEST_CASE("virtual stages are layers of each for core 0.7, their number for 0.15") {
  // 80 layers, 8 stages of 5 parts: 2 layers each.
  Scenario s =
      large("megatron-core", "data = \"zero1\"\ntensor = 4\npipeline = 8\nvirtual_stages = 5\n");
  s.software.version = "0.7";
  const Launch launch = launch_of(s);
  REQUIRE(launch.files.size() == 1);
  CHECK(missing(launch.files[0], {"--num-layers-per-virtual-pipeline-stage 2"}) == None{});
}

TEST_CASE("uneven stages are arguments of the releases that have them") {
  Scenario s =
      large("megatron-core",
            "data = \"zero1\"\ntensor = 8\npipeline = 4\nstage_layers = [19, 21, 21, 19]\n");
  s.software.version = "0.7";
  CHECK_THAT(launch_of(s).why_not, Contains("megatron-core 0.7 cuts 80 layers into 4 equal parts"));
  s.software.version = "0.12";
  REQUIRE(launch_of(s).files.size() == 1);
  CHECK(missing(launch_of(s).files[0], {"--decoder-first-pipeline-num-layers 19",
                                        "--decoder-last-pipeline-num-layers 19"}) == None{});
  s.plan.stage_layers = {2, 4, 3, 2};
  s.model.layers = 11;
  CHECK_THAT(launch_of(s).why_not, Contains("--pipeline-model-parallel-layout"));
  s.software.version = "0.15";
  REQUIRE(launch_of(s).files.size() == 1);
  CHECK(missing(launch_of(s).files[0], {"--pipeline-model-parallel-layout Ett|tttt|ttt|ttL"}) ==
        None{});
}

TEST_CASE("a plan that a form cannot say is refused with the reason") {
  const auto why_not = [](const char* framework, const std::string& plan) {
    const Launch launch = launch_of(large(framework, plan));
    CHECK(launch.files.empty());
    return launch.why_not;
  };
  CHECK_THAT(why_not("megatron-core",
                     "data = \"zero1\"\ntensor = 8\npipeline = 2\nschedule = \"gpipe\"\n"),
             Contains("runs 1f1b, not gpipe"));
  CHECK_THAT(why_not("deepspeed", "data = \"zero1\"\ntensor = 2\n"),
             Contains("no tensor, context or pipeline degree"));
  CHECK_THAT(why_not("torchtitan", "data = \"ddp\"\ncontext = 2\n"),
             Contains("no ddp beside them"));
  Scenario nemo = large("nemo", "data = \"zero1\"\n");
  nemo.software.version = "2024";
  CHECK_THAT(launch_of(nemo).why_not, Contains("recipes in Python"));
  CHECK_THAT(why_not("llm-c", "data = \"zero1\"\n"), Contains("llm-c has no launch form here"));
}

TEST_CASE("what a form does not say is named") {
  const Launch launch = launch_of(large("torchtitan",
                                        "data = \"zero2\"\nprefetch = 3\ntensor = 2\n"
                                        "sequence_parallel = false\nreduce = \"last\"\n"
                                        "[nccl]\nNCCL_ALGO = \"Ring\"\n"));
  REQUIRE(launch.notes.size() == 5);
  CHECK_THAT(launch.notes[0], Contains("sequence_parallel = true"));
  CHECK_THAT(launch.notes[1], StartsWith("llama2-70b must be made known to torchtitan"));
  CHECK_THAT(launch.notes[2], StartsWith("plan.reduce = \"last\" is not said"));
  CHECK_THAT(launch.notes[3], StartsWith("plan.prefetch = 3 is not said"));
  CHECK_THAT(launch.notes[4], Contains("NCCL_ALGO=Ring"));
}

TEST_CASE("a key of the software that the user changed is said or named") {
  Scenario s = large("megatron-core", "data = \"zero1\"\n");
  s.changed = {"software.gradient_overlap", "software.loss_memory"};
  const Launch launch = launch_of(s);
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], StartsWith("software.loss_memory is not said"));
}

TEST_CASE("experts have words of Megatron core, torchtitan and DeepSpeed, or a reason") {
  const auto scout = [](const std::string& framework) {
    return launch_of(scenario(
        "[model]\nname = \"llama4-maverick\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\n"
        "nodes = 64\n[plan]\ndata = \"zero1\"\npipeline = 4\nexpert = 64\n"
        "shared_expert_overlap = true\nrecompute_modules = [\"expert_activation\", \"norm\"]\n"
        "[batch]\nglobal = 512\nmicro_batch = 1\n[software]\nframework = \"" +
        framework + "\"\n"));
  };
  const Launch launch = scout("megatron-core");
  REQUIRE(launch.files.size() == 1);
  CHECK(missing(launch.files[0],
                {"--num-experts 128", "--moe-router-topk 1", "--moe-ffn-hidden-size 8192",
                 "--moe-shared-expert-intermediate-size 8192", "--expert-model-parallel-size 64",
                 "--expert-tensor-parallel-size 1", "--moe-token-dispatcher-type alltoall",
                 "--moe-shared-expert-overlap", "--moe-grouped-gemm",
                 "--recompute-granularity selective", "--recompute-modules layernorm moe_act"}) ==
        None{});
  CHECK_THAT(launch.files[0].text, Contains("--moe-layer-freq '[0,1,0,1,"));
  CHECK(missing(scout("nemo").files.at(0), {"model.recompute_granularity=selective",
                                            "model.recompute_modules=[layernorm,moe_act]"}) ==
        None{});
  CHECK_THAT(scout("deepspeed").why_not, Contains("for Megatron alone"));

  const auto mixtral = [](const std::string& framework, const std::string& plan,
                          const std::string& more = "") {
    return launch_of(scenario(
        "[model]\nname = \"mixtral-8x7b\"\nsequence = 4096\n[cluster]\n"
        "node = \"dgx-h100\"\nnodes = 4\n[plan]\n" +
        plan + "[batch]\nglobal = 64\nmicro_batch = 1\n[software]\nframework = \"" + framework +
        "\"\n" + (framework == "torchtitan" ? "version = \"2025\"\n" : "") + more));
  };
  const std::string balanced = "[routing]\nkind = \"balanced\"\n";
  const Launch titan = mixtral(
      "torchtitan", "data = \"zero3\"\nexpert = 8\ndispatcher = \"node_aware\"\n", balanced);
  REQUIRE(titan.files.size() == 1);
  CHECK(missing(titan.files[0], {"expert_parallel_degree = 8", "expert_tensor_parallel_degree = 1",
                                 "expert_parallel_comm_backend = \"deepep\"",
                                 "moe_force_load_balance = true"}) == None{});
  const std::string cut = "data = \"zero3\"\ntensor = 2\nsequence_parallel = true\nexpert = 4\n";
  CHECK_THAT(mixtral("torchtitan", cut + "dispatcher = \"node_aware\"\n").why_not,
             Contains("\"node_aware\" has no expert_tensor"));
  CHECK_THAT(
      mixtral("torchtitan", "data = \"zero3\"\nexpert = 8\ncapacity_factor = 1.25\n").why_not,
      Contains("drops no token"));
  const Launch deepspeed =
      mixtral("deepspeed", "data = \"zero1\"\nexpert = 8\ncapacity_factor = 1.25\n",
              "[routing]\nkind = \"max_violation\"\nmax_violation = 0.5\n");
  REQUIRE(deepspeed.files.size() == 1);
  CHECK(std::ranges::any_of(deepspeed.notes, [](const std::string& note) {
    return note.find("num_experts=8, ep_size=8, k=2, capacity_factor=1.25") != std::string::npos;
  }));
  CHECK(std::ranges::any_of(deepspeed.notes, [](const std::string& note) {
    return note.starts_with("[routing] has no argument");
  }));
  CHECK(missing(mixtral("megatron-core", "data = \"zero1\"\nexpert = 8\n", balanced).files[0],
                {"--moe-router-force-load-balancing"}) == None{});
}

TEST_CASE("an exchange that overlaps has its arguments, and more than one connection") {
  const Launch launch = launch_of(scenario(
      "[model]\nname = \"mixtral-8x7b\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\n"
      "nodes = 4\n[plan]\ndata = \"zero1\"\ntensor = 2\nsequence_parallel = true\nexpert = 8\n"
      "expert_tensor = 1\nexpert_overlap = true\ndelay_wgrad = true\n[batch]\nglobal = 256\n"
      "micro_batch = 1\n[software]\nframework = \"megatron-core\"\ntensor_overlap = false\n"));
  REQUIRE(launch.files.size() == 1);
  CHECK(missing(launch.files[0], {"--overlap-moe-expert-parallel-comm", "--delay-wgrad-compute"}) ==
        None{});
  CHECK(launch.files[0].use.find("CUDA_DEVICE_MAX_CONNECTIONS=1") == std::string::npos);
}

// Names by generation: MEGATRON's argument parsers at their tags (megatron_names.tsv).
TEST_CASE("arguments are called as their release calls them") {
  const auto of = [](const char* version, const std::string& plan, const std::string& more = "") {
    return launch_of(scenario(
        "[model]\nname = \"qwen3-30b-a3b\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\n"
        "nodes = 4\n[plan]\n" +
        plan +
        "[batch]\nglobal = 64\nmicro_batch = 1\n[software]\n"
        "framework = \"megatron-core\"\nversion = \"" +
        version + "\"\n" + more));
  };
  const std::string deepep = "data = \"zero1\"\nexpert = 8\ndispatcher = \"node_aware\"\n";
  CHECK(missing(of("0.14", deepep).files.at(0), {"--moe-enable-deepep"}) == None{});
  CHECK(missing(of("0.16", deepep).files.at(0), {"--moe-flex-dispatcher-backend deepep"}) ==
        None{});
  const std::string fsdp = "use_megatron_fsdp = true\n";
  CHECK(missing(of("0.13", "data = \"zero3\"\nexpert = 8\n", fsdp).files.at(0),
                {"--use-custom-fsdp"}) == None{});
  CHECK(missing(of("0.14", "data = \"zero3\"\nexpert = 8\n", fsdp).files.at(0),
                {"--use-megatron-fsdp", "--ckpt-format fsdp_dtensor"}) == None{});
  CHECK_THAT(of("0.10", "data = \"zero3\"\nexpert = 8\n", fsdp).why_not,
             Contains("no FSDP of its own"));
}

TEST_CASE("models of the year have a launch form, or a reason") {
  const auto of = [](const std::string& model, const std::string& framework,
                     const std::string& data, const std::string& more = "") {
    return launch_of(scenario("[model]\nname = \"" + model + "\"\nsequence = 4096\n" + more +
                              "[cluster]\nnode = \"dgx-h100\"\nnodes = 64\n[plan]\ndata = \"" +
                              data + "\"\n[batch]\nglobal = 1024\n[software]\nframework = \"" +
                              framework + "\"\n"));
  };
  for (const char* model :
       {"qwen3-8b", "qwen3-30b-a3b", "Qwen3-Next-80B-A3B", "llama3-8b", "llama4-scout",
        "deepseek-v3", "kimi-k2", "gpt-oss-20b", "GLM-4.5", "mixtral-8x7b"}) {
    INFO(model);
    CHECK(of(model, "megatron-core", "zero1").files.size() == 1);
    CHECK(of(model, "nemo", "zero1").why_not == "");
  }
  for (const char* model : {"qwen3-30b-a3b", "gpt-oss-20b", "mixtral-8x7b"})
    CHECK(of(model, "trl", "zero3").files.size() == 2);
  CHECK(of("deepseek-v3", "trl", "zero3", "mtp_layers = 0\n").files.size() == 2);
  CHECK_THAT(of("gemma-3-27b", "megatron-core", "zero1").why_not,
             Contains("norms behind attention and MLP"));
  for (const char* model : {"gemma-3-27b", "Olmo-3-1025-7B", "qwen3-8b", "llama3-8b"})
    CHECK(of(model, "trl", "zero3").files.size() == 2);
  for (const char* model : {"qwen3-8b", "qwen3-30b-a3b", "llama3-8b", "kimi-k2", "gpt-oss-20b"})
    CHECK(of(model, "torchtitan", "zero3").files.size() == 1);
  CHECK(of("deepseek-v3", "torchtitan", "zero3", "mtp_layers = 0\n").files.size() == 1);
  CHECK_THAT(of("llama2-7b", "torchtitan", "zero3").why_not, Contains("no model like llama2-7b"));
  const Launch next = of("Qwen3-Next-80B-A3B", "megatron-core", "zero1");
  CHECK(missing(next.files[0],
                {"--experimental-attention-variant gated_delta_net", "--linear-attention-freq 4",
                 "--attention-output-gate", "--linear-num-value-heads 32"}) == None{});
  CHECK(missing(of("gpt-oss-20b", "megatron-core", "zero1").files[0],
                {"--window-size 127,0", "--window-attn-skip-freq 2", "--softmax-type learnable",
                 "--quick-geglu"}) == None{});
  CHECK(missing(of("deepseek-v3", "megatron-core", "zero1").files[0],
                {"--multi-latent-attention", "--q-lora-rank 1536", "--mtp-num-layers 1"}) ==
        None{});
}

// The twelve that a user of 2026 asks for first, and where torchtitan has them.
TEST_CASE(
    "12 of 12 models have a form in Megatron or Bridge, and in torchtitan where it has them") {
  struct Wanted {
    const char* model;
    bool in_torchtitan;
    const char* more = "";
  };
  constexpr Wanted wanted[] = {{"qwen3-8b", true},
                               {"qwen3-30b-a3b", true},
                               {"Qwen3-Next-80B-A3B", false, "mtp_layers = 0\n"},
                               {"llama3-8b", true},
                               {"llama4-scout", false},
                               {"deepseek-v3", true, "mtp_layers = 0\n"},
                               {"kimi-k2", true},
                               {"gpt-oss-20b", true},
                               {"GLM-4.5", false, "mtp_layers = 0\n"},
                               {"gemma-3-27b", false},
                               {"mixtral-8x7b", false},
                               {"Olmo-3-1025-7B", false}};
  const auto files_of = [](const Wanted& one, const std::string& framework,
                           const std::string& data) {
    const Launch launch = launch_of(
        scenario("[model]\nname = \"" + std::string(one.model) + "\"\nsequence = 4096\n" +
                 one.more + "[cluster]\nnode = \"dgx-h100\"\nnodes = 64\n[plan]\ndata = \"" + data +
                 "\"\n[batch]\nglobal = 1024\n[software]\nframework = \"" + framework + "\"\n"));
    INFO(one.model << " " << framework << ": " << launch.why_not);
    CHECK(launch.files.empty() != launch.why_not.empty());
    return launch.files.size();
  };
  int by_nvidia = 0, in_torchtitan = 0;
  for (const Wanted& one : wanted) {
    INFO(one.model);
    const bool bridge = files_of(one, "nemo", "zero1") > 0;
    const bool megatron = files_of(one, "megatron-core", "zero1") > 0;
    CHECK(bridge);
    by_nvidia += bridge || megatron ? 1 : 0;
    CHECK((files_of(one, "torchtitan", "zero3") == 1) == one.in_torchtitan);
    in_torchtitan += one.in_torchtitan ? 1 : 0;
  }
  CHECK(by_nvidia == 12);
  CHECK(in_torchtitan == 6);
}
