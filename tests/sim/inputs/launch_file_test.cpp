// Files in the shapes that people have: one of each format, written here, values invented.
#include "sim/inputs/launch_file.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/inputs/formats.hpp"
#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

TEST_CASE("a launch script of Megatron-LM: arrays, defaults, a tokenizer's vocabulary") {
  const LaunchInput input = input_of(
      "#!/bin/bash\nNNODES=${SLURM_NNODES:-\"4\"}\nGPUS=8\nTP=2\n"
      "DISTRIBUTED=(--nproc_per_node $GPUS --nnodes $NNODES)\n"
      "MODEL=(\n  --num-layers 48\n  --hidden-size 2048\n  --ffn-hidden-size 6144\n"
      "  --num-attention-heads 32\n  --kv-channels 128\n  --group-query-attention\n"
      "  --num-query-groups 4\n  --qk-layernorm\n  --swiglu\n  --normalization RMSNorm\n"
      "  --disable-bias-linear\n  --untie-embeddings-and-output-weights\n"
      "  --position-embedding-type rope\n  --seq-length 4096\n"
      "  --max-position-embeddings 40960\n  --num-experts 128\n  --moe-router-topk 8\n"
      "  --moe-ffn-hidden-size 768\n  --moe-layer-freq '([1]*48)'\n)\n"
      "if [ -n \"$WANDB_KEY\" ]; then MODEL+=(--wandb-project x); fi\n"
      "torchrun ${DISTRIBUTED[@]} pretrain_gpt.py ${MODEL[@]} \\\n"
      "  --tensor-model-parallel-size $TP --expert-model-parallel-size 8 --sequence-parallel \\\n"
      "  --micro-batch-size 1 --global-batch-size 256 --bf16 --use-distributed-optimizer \\\n"
      "  --recompute-granularity selective --recompute-modules core_attn moe_act \\\n"
      "  --tokenizer-model Qwen/Qwen3-30B-A3B --data-path $1 --lr 1e-4 --no-such-thing 3\n",
      "train.sh");
  CHECK_THAT(input.format, Contains("Megatron-LM"));
  CHECK(input.facts.ranks == 32);
  CHECK(input.understanding.unknown == std::vector<std::string>{"no_such_thing = 3"});
  CHECK(input.understanding.open == std::vector<std::string>{});  // the data's path is no matter
  const Scenario s = scenario_of(input, 4);
  CHECK(s.model.vocab == 151936);
  CHECK(s.model.qk_norm);
  CHECK(s.model.experts.count == 128);
  CHECK(s.plan.tensor == 2);
  CHECK(s.plan.expert.degree == 8);
  CHECK(s.plan.data == workloads::DataParallel::zero1);
  CHECK(s.plan.recompute_modules.has(workloads::LayerModule::expert_activation));
  CHECK(s.batch.micro_batches * 16 == 256);
}

TEST_CASE("a dump of Megatron's arguments, windows and sinks among them") {
  std::string text = "------------ arguments ------------\n";
  for (const auto& [name, value] : {std::pair{"num_layers", "24"},
                                    {"hidden_size", "2880"},
                                    {"num_attention_heads", "64"},
                                    {"kv_channels", "64"},
                                    {"group_query_attention", "True"},
                                    {"num_query_groups", "8"},
                                    {"seq_length", "8192"},
                                    {"max_position_embeddings", "8192"},
                                    {"num_experts", "32"},
                                    {"moe_router_topk", "4"},
                                    {"moe_ffn_hidden_size", "2880"},
                                    {"quick_geglu", "True"},
                                    {"normalization", "RMSNorm"},
                                    {"position_embedding_type", "rope"},
                                    {"window_size", "(127, 0)"},
                                    {"window_attn_skip_freq", "2"},
                                    {"softmax_type", "learnable"},
                                    {"add_bias_linear", "True"},
                                    {"untie_embeddings_and_output_weights", "True"},
                                    {"vocab_size", "201088"},
                                    {"tensor_model_parallel_size", "1"},
                                    {"pipeline_model_parallel_size", "1"},
                                    {"expert_model_parallel_size", "8"},
                                    {"micro_batch_size", "1"},
                                    {"global_batch_size", "64"},
                                    {"use_distributed_optimizer", "True"},
                                    {"bf16", "True"},
                                    {"accumulate_allreduce_grads_in_fp32", "True"},
                                    {"hidden_dropout", "0.0"},
                                    {"world_size", "8"},
                                    {"recompute_granularity", "None"}})
    text += "  " + std::string(name) + " " + std::string(40, '.') + " " + value + "\n";
  const Scenario s = scenario_of(input_of(text), 1);
  CHECK(s.model.window == 128);
  CHECK(s.model.window_every == 2);
  CHECK(s.model.sinks);
  CHECK(s.model.activation == workloads::Activation::swiglu);
  CHECK(s.gpus == 8);
}

TEST_CASE("gated delta layers of Megatron's arguments are a pattern") {
  const LaunchInput input = input_of(
      "--num-layers 48\n--hidden-size 2048\n--num-attention-heads 16\n--kv-channels 256\n"
      "--num-experts 512\n--experimental-attention-variant gated_delta_net\n"
      "--linear-attention-freq 4\n--linear-key-head-dim 128\n--linear-value-head-dim 128\n"
      "--linear-num-key-heads 16\n--linear-num-value-heads 32\n--attention-output-gate\n");
  CHECK(text_of(input.facts, "model.layer_pattern") == "\"GE GE GE *E\"");
  CHECK(input.facts.integer("model.delta_value_heads") == 32);
  CHECK(text_of(input.facts, "model.attention_gate") == "\"element\"");
}

TEST_CASE("LLaMA-Factory's YAML: adapters on four bits, recompute unless it is disabled") {
  const LaunchInput input = input_of(
      "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nquantization_bit: 4\nstage: sft\n"
      "finetuning_type: lora\nlora_rank: 16\nlora_target: all\ntemplate: llama3\n"
      "cutoff_len: 4096\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 4\n"
      "bf16: true\nlearning_rate: 1.0e-4\nuse_galore: false\n",
      "lora.yaml");
  CHECK_THAT(input.format, Contains("LLaMA-Factory"));
  const Scenario s = scenario_of(input, 1);
  CHECK(s.model.lora.rank == 16);
  CHECK(s.model.lora.base == workloads::LoraBase::nf4_double);
  CHECK(s.plan.recompute == workloads::Recompute::full);
  CHECK(s.plan.data == workloads::DataParallel::ddp);
  CHECK(s.global_batch == 64);
  CHECK(s.batch.sequence == 4096);
  CHECK(says(input.facts.notes, "as long as the longest"));
}

TEST_CASE("Axolotl's YAML: FSDP, packing, what bears on a step and has no key") {
  const LaunchInput input = input_of(
      "base_model: Qwen/Qwen3-8B\nsequence_len: 8192\nsample_packing: true\n"
      "micro_batch_size: 1\ngradient_accumulation_steps: 2\nadapter: lora\nlora_r: 32\n"
      "lora_target_linear: true\ngradient_checkpointing: true\nbf16: auto\n"
      "flash_attention: true\nfsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n"
      "  offload_params: false\nplugins:\n  - axolotl.integrations.liger.LigerPlugin\n"
      "datasets:\n  - path: some/set\n    type: alpaca\nnot_a_word: 1\n");
  const Scenario s = scenario_of(input, 2);
  CHECK(s.plan.data == workloads::DataParallel::zero3);
  CHECK(s.model.lora.targets.has(workloads::LoraTarget::down));
  CHECK(s.global_batch == 32);
  CHECK(says(input.understanding.unsaid, "plugins"));
  CHECK(input.understanding.unknown == std::vector<std::string>{"not_a_word = 1"});
}

TEST_CASE("TRL's and accelerate's YAML are one run") {
  const NamedText files[] = {
      {"sft.yaml",
       "model_name_or_path: Qwen/Qwen3-8B\nmax_length: 4096\nper_device_train_batch_size: 2\n"
       "gradient_accumulation_steps: 2\ngradient_checkpointing: false\nbf16: true\n"
       "packing: true\n"},
      {"fsdp2.yaml",
       "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
       "num_machines: 1\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 2\n"
       "  fsdp_reshard_after_forward: false\n"}};
  const auto input = read_launch_files(files, catalogue());
  REQUIRE(input);
  const Scenario s = scenario_of(*input, 1);
  CHECK(s.software.framework == "trl");
  CHECK(s.plan.data == workloads::DataParallel::zero2);
  CHECK(s.plan.recompute == workloads::Recompute::none);
  CHECK(s.global_batch == 32);
}

TEST_CASE("DeepSpeed's JSON with auto asks for what the trainer has") {
  const LaunchInput input = input_of(
      "{\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\",\n"
      " \"bf16\": {\"enabled\": \"auto\"}, \"zero_optimization\": {\"stage\": 3,\n"
      " \"offload_optimizer\": {\"device\": \"cpu\"}}}",
      "ds.json");
  TomlValue document = facts_document(input.facts, "ds.json");
  std::string options;
  for (const MissingKey& one : missing_keys(document, input.facts, catalogue()))
    options += one.option + " ";
  CHECK(options == "--model llama3-8b --sequence 8192 --gpu h100 --nodes 2 --global-batch 256 ");
  CHECK(says(input.facts.notes, "trainer's to say"));
  CHECK(text_of(input.facts, "plan.data") == "\"zero3\"");
  CHECK(text_of(input.facts, "plan.optimizer_offload") == "1.0");
}

TEST_CASE("verl's command line is the update of the policy") {
  const LaunchInput input = input_of(
      "set -x\nprompt=1024\npython3 -m verl.trainer.main_ppo \\\n"
      "  algorithm.adv_estimator=grpo data.max_prompt_length=$prompt \\\n"
      "  data.max_response_length=$((prompt * 3)) data.train_batch_size=512 \\\n"
      "  actor_rollout_ref.model.path=Qwen/Qwen3-8B \\\n"
      "  actor_rollout_ref.actor.ppo_mini_batch_size=128 \\\n"
      "  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \\\n"
      "  actor_rollout_ref.actor.ulysses_sequence_parallel_size=2 \\\n"
      "  actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 trainer.nnodes=2 $@\n");
  const Scenario s = scenario_of(input, 2);
  CHECK(s.batch.sequence == 4096);
  CHECK(s.global_batch == 512);
  CHECK(s.plan.context == 2);
  CHECK(s.plan.data == workloads::DataParallel::zero3);
  CHECK(s.plan.recompute == workloads::Recompute::full);
  CHECK(says(input.facts.notes, "update of the policy"));
}

TEST_CASE("ms-swift's arguments over Megatron") {
  const LaunchInput input = input_of(
      "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B --tuner_type full \\\n"
      "  --expert_model_parallel_size 8 --tensor_model_parallel_size 2 \\\n"
      "  --sequence_parallel true --micro_batch_size 1 --global_batch_size 32 \\\n"
      "  --use_distributed_optimizer true --recompute_granularity full --max_length 8192\n");
  const Scenario s = scenario_of(input, 1);
  CHECK(s.software.framework == "megatron-core");
  CHECK(s.plan.tensor == 2);
  CHECK(s.plan.expert.degree == 8);
  CHECK(s.plan.recompute == workloads::Recompute::full);
  CHECK(s.global_batch == 32);
}

TEST_CASE("torchtitan's registry and its command line") {
  const std::string registry =
      "from torchtitan.config import TrainingConfig\n\n\n"
      "def small() -> Trainer.Config:\n    model_spec = model_registry(\"8B\")\n"
      "    return Trainer.Config(\n        model_spec=model_spec,\n        "
      "training=TrainingConfig(\n"
      "            num_tokens_per_microbatch_per_dp_rank=2 * 8192,\n"
      "            max_context_length=8192,\n        ),\n"
      "        parallelism=ParallelismConfig(tensor_parallel_degree=2),\n"
      "        activation_checkpoint=FullAC.Config(),\n    )\n\n\n"
      "def other():\n    config = small()\n    config.parallelism.tensor_parallel_degree = 4\n"
      "    return config\n";
  CHECK_THROWS_WITH(input_of(registry, "llama3/config_registry.py"),
                    Contains("several functions: other, small"));
  const Scenario s = scenario_of(input_of(registry, "llama3/config_registry.py#other"), 2);
  CHECK(s.model.name == "llama3-8b");
  CHECK(s.plan.tensor == 4);
  CHECK(s.plan.recompute == workloads::Recompute::full);
  CHECK(s.batch.micro_batch == 2);
  CHECK(s.global_batch == 8);

  const Scenario line = scenario_of(
      input_of("NGPU=8 MODULE=qwen3 CONFIG=qwen3_30b_a3b ./run_train.sh "
               "--parallelism.expert_parallel_degree 4 --training.max_context_length 8192\n"),
      1);
  CHECK(line.model.name == "qwen3-30b-a3b");
  CHECK(line.plan.expert.degree == 4);
  CHECK(line.batch.sequence == 8192);
  CHECK(line.batch.micro_batch == 1);
}

TEST_CASE("nanotron's and Megatron-Bridge's YAML") {
  const Scenario nano = scenario_of(
      input_of("model:\n  dtype: bfloat16\n  model_config:\n    hidden_size: 2048\n"
               "    intermediate_size: 8192\n    num_attention_heads: 32\n"
               "    num_hidden_layers: 16\n    num_key_value_heads: 8\n    vocab_size: 128256\n"
               "    tie_word_embeddings: true\noptimizer:\n  zero_stage: 1\n"
               "  accumulate_grad_in_fp32: true\nparallelism:\n  dp: 8\n  tp: 2\n  pp: 1\n"
               "  tp_mode: REDUCE_SCATTER\ntokens:\n  sequence_length: 4096\n"
               "  micro_batch_size: 2\n  batch_accumulation_per_replica: 4\n"),
      2);
  CHECK(nano.global_batch == 64);
  CHECK(nano.plan.sequence_parallel);
  CHECK(nano.plan.data == workloads::DataParallel::zero1);
  const Scenario bridge =
      scenario_of(input_of("model:\n  seq_length: 8192\n  tensor_model_parallel_size: 4\n"
                           "  sequence_parallel: true\n  recompute_granularity: full\n"
                           "train:\n  global_batch_size: 64\n  micro_batch_size: 1\n"
                           "ddp:\n  grad_reduce_in_fp32: true\n"),
                  2, "qwen3-8b");
  CHECK(bridge.software.framework == "nemo");
  CHECK(bridge.plan.tensor == 4);
  CHECK(bridge.plan.recompute == workloads::Recompute::full);
}

TEST_CASE("every word of every table means something, and no name stands twice") {
  for (const InputFormat& format : input_formats())
    for (const LaunchWords& words : format.tables())
      for (std::size_t i = 0; i < words.size(); ++i) {
        INFO(format.name << ": " << words[i].name);
        if (words[i].use == Use::count || words[i].use == Use::flag)
          CHECK(words[i].key.find('.') != std::string_view::npos);
        if (words[i].use == Use::unsaid) CHECK_FALSE(words[i].key.empty());
        for (std::size_t j = i + 1; j < words.size(); ++j) CHECK(words[i].name != words[j].name);
      }
}

TEST_CASE("a text of no format is none, and broken YAML says its line") {
  const NamedText other{"a.yaml", "colour: blue\n"};
  CHECK_FALSE(read_launch_files({&other, 1}, catalogue()));
  const NamedText broken{"a.yaml", "base_model: x\n  micro_batch_size: [1\n"};
  CHECK_THROWS_WITH(read_launch_files({&broken, 1}, catalogue()), Contains("a.yaml:"));
}

TEST_CASE("where files set a word to different values the first holds, and that is said") {
  const NamedText files[] = {
      {"plan.yaml", "micro_batch_size: 2\ngradient_accumulation_steps: 8\nbf16: true\n"},
      {"own.yaml",
       "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\ngradient_accumulation_steps: 8\n"
       "sequence_len: 4096\nbf16: True\n"}};
  const auto input = read_launch_files(files, catalogue());
  REQUIRE(input);
  CHECK(input->facts.integer("batch.micro_batch") == 2);
  CHECK_THAT(fmt::format("{}", fmt::join(sentences_on(*input), "\n")),
             Contains("own.yaml: an earlier file's values hold: micro_batch_size = 2, not 1."));
}

TEST_CASE("a run of a recipe of Megatron-Bridge: what is laid over it, and what it says itself") {
  const LaunchInput input = input_of(
      "#!/bin/bash\nGPUS=8\ntorchrun --nproc_per_node=$GPUS --nnodes 2 scripts/training/"
      "run_recipe.py \\\n  --recipe qwen3_30b_a3b_pretrain_config --seq_length 8192 \\\n"
      "  train.global_batch_size=128 model.expert_model_parallel_size=8 \\\n"
      "  model.pipeline_model_parallel_size=1 optimizer.lr=0.0003\n",
      "train.sh");
  CHECK_THAT(input.format, Contains("Megatron-Bridge"));
  CHECK(input.understanding.unknown == std::vector<std::string>{});
  CHECK(text_of(input.facts, "model.name") == "\"Qwen/Qwen3-30B-A3B\"");
  CHECK(input.facts.integer("model.sequence") == 8192);
  CHECK(input.facts.integer("batch.global") == 128);
  CHECK(input.facts.integer("batch.micro_batch") == 2);  // of the recipe, as the rest
  CHECK(input.facts.integer("plan.tensor") == 4);
  CHECK(input.facts.integer("plan.pipeline") == 1);
  CHECK(input.facts.integer("plan.expert") == 8);
  CHECK(input.facts.integer("plan.expert_tensor") == 1);
  CHECK(text_of(input.facts, "plan.recompute") == "\"full\"");
  CHECK(input.facts.ranks == 16);
  CHECK(says(input.facts.notes, "as in qwen3_30b_a3b_pretrain_config"));
  const LaunchInput tuned =
      input_of("torchrun run_recipe.py --recipe llama31_8b_sft_config --dataset squad\n");
  CHECK(text_of(tuned.facts, "model.name").find("3.1-8B") != std::string::npos);
  CHECK(tuned.facts.find("plan.tensor") == nullptr);  // of fine-tuning nothing is known
}

TEST_CASE("overrides of a recipe that name no model are of the one that the file is called after") {
  const std::string text =
      "model:\n  tensor_model_parallel_size: 1\ntrain:\n  "
      "global_batch_size: 8\ncheckpoint:\n  pretrained_checkpoint: <a path>\n";
  const LaunchInput input = input_of(text, "conf/small_llama3_8b_pretrain_example.yaml");
  CHECK(text_of(input.facts, "model.name") == "\"llama3-8b\"");
  CHECK(input.facts.integer("model.sequence") == 8192);
  CHECK(input.facts.integer("plan.tensor") == 1);
  CHECK(says(input.facts.notes, "which the file is called after"));
  CHECK(text_of(input_of(text, "qwen3_next_80b_a3b_tune.yaml").facts, "model.name")
            .find("Next-80B") != std::string::npos);
  CHECK(input_of(text, "mine.yaml").facts.find("model.name") == nullptr);
}

TEST_CASE("a recipe in Python is read as text: another's, or a provider of the model's shape") {
  const LaunchInput named = input_of(
      "from megatron.bridge.recipes.qwen import qwen3_8b_pretrain_config\n\n"
      "def mine():\n    cfg = qwen3_8b_pretrain_config()\n"
      "    cfg.train.global_batch_size = 64\n    cfg.model.tensor_model_parallel_size = 2\n"
      "    return cfg\n",
      "mine.py");
  CHECK(text_of(named.facts, "model.name") == "\"Qwen/Qwen3-8B\"");
  CHECK(named.facts.integer("batch.global") == 64);
  CHECK(named.facts.integer("plan.tensor") == 2);
  const LaunchInput shape = input_of(
      "from megatron.bridge.models.gpt_provider import GPTModelProvider\n\n"
      "def mine():\n    config = base_config()\n    config.model = GPTModelProvider(\n"
      "        num_layers=4,\n        hidden_size=512,\n        num_attention_heads=8,\n"
      "        num_query_groups=2,\n        ffn_hidden_size=1024,\n        vocab_size=32000,\n"
      "        seq_length=2048,\n        gated_linear_unit=True,\n        num_moe_experts=8,\n"
      "        moe_router_topk=2,\n        moe_ffn_hidden_size=256,\n"
      "        normalization=\"RMSNorm\",\n    )\n    return config\n",
      "mine.py");
  CHECK(shape.facts.integer("model.layers") == 4);
  CHECK(shape.facts.integer("model.kv_heads") == 2);
  CHECK(shape.facts.integer("model.experts") == 8);
  CHECK(shape.facts.integer("model.expert_ffn") == 256);
  CHECK(text_of(shape.facts, "model.activation") == "\"swiglu\"");
  CHECK(text_of(shape.facts, "software.framework") == "\"nemo\"");
}

TEST_CASE("a vocabulary that is not said is as large as the tokenizer's file is called") {
  const auto vocabulary = [](const std::string& model) {
    return input_of(
               "--num-layers 4\n--hidden-size 512\n--num-attention-heads 8\n"
               "--seq-length 512\n--tokenizer-model " +
                   model + "\n",
               "megatron.args")
        .facts.integer("model.vocab");
  };
  CHECK(vocabulary("utils/sp_2_256k.model") == 256'000);
  CHECK(vocabulary("spiece_32k_en.model") == 32'000);
  CHECK(vocabulary("tokenizer.model") == std::nullopt);
  CHECK(vocabulary("mine.json --tokenizer-type TikTokenizer") == 131'072);
  CHECK(vocabulary("checkpoint_5k.model") == std::nullopt);  // too few for a vocabulary
}

TEST_CASE("nanotron's experts, and its expert ranks beside all others") {
  const std::string rest =
      "tokens:\n  sequence_length: 512\n  micro_batch_size: 2\n"
      "  batch_accumulation_per_replica: 1\n";
  const LaunchInput qwen = input_of(
      "model:\n  dtype: bfloat16\n  model_config:\n    num_hidden_layers: 2\n"
      "    hidden_size: 256\n    num_attention_heads: 4\n    num_key_value_heads: 4\n"
      "    intermediate_size: 768\n    vocab_size: 32000\n    moe_config:\n"
      "      num_experts: 8\n      top_k: 1\n      enable_shared_expert: true\n"
      "parallelism:\n  dp: 8\n  tp: 1\n  pp: 1\n" +
          rest,
      "qwen.yaml");
  CHECK(qwen.facts.integer("model.expert_ffn") == 1408);  // a default of its configuration
  CHECK(qwen.facts.integer("model.shared_expert_ffn") == 5632);
  CHECK(scenario_of(qwen, 1).model.experts.count == 8);
  const LaunchInput spread = input_of(
      "model:\n  dtype: bfloat16\n  model_config:\n    num_hidden_layers: 2\n"
      "    hidden_size: 256\n    num_attention_heads: 4\n    num_key_value_heads: 4\n"
      "    intermediate_size: 512\n    vocab_size: 32000\n    moe_num_experts: 4\n"
      "    num_experts_per_tok: 1\nparallelism:\n  dp: 4\n  tp: 1\n  pp: 1\n"
      "  expert_parallel_size: 2\n" +
          rest,
      "moe.yaml");
  CHECK(spread.facts.ranks == 8);
  CHECK(spread.facts.integer("batch.global") == 16);
  CHECK(scenario_of(spread, 1).plan.expert.degree == 2);
  const LaunchInput whole = input_of(
      "model:\n  dtype: bfloat16\n  model_config:\n    num_hidden_layers: 2\n"
      "    hidden_size: 256\n    num_attention_heads: 4\n    num_key_value_heads: 4\n"
      "    intermediate_size: 512\n    vocab_size: 32000\n    moe_num_experts: 4\n"
      "parallelism:\n  dp: 4\n  tp: 2\n  pp: 1\n  tp_mode: ALL_REDUCE\n" +
          rest,
      "moe.yaml");
  CHECK(scenario_of(whole, 1).plan.sequence_parallel);
  CHECK(says(whole.facts.notes, "they are taken to cut the sequence"));
}
