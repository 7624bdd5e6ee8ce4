#include "validate/trace/settings.hpp"

#include <catch2/catch.hpp>
#include <sstream>

using namespace stepcast::validate;

namespace {

Settings read(const std::string& text) {
  SettingsReader reader;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) reader.line(line);
  return reader.take();
}

std::string said(const Settings& settings, const std::string& name) {
  const std::string* text = settings.find(name);
  return text == nullptr ? "nothing" : *text;
}

}  // namespace

// Formats after the sources named in settings.hpp; values are invented.

TEST_CASE("Megatron-LM's arguments, plain and behind a launcher's prefix") {
  const Settings s = read(
      "------------------------ arguments ------------------------\n"
      "  num_layers ...................................... 32\n"
      "[default0]:  seq_length ...................................... 4096\n"
      "0:   recompute_granularity ........................... None\n"
      "  data_path ....................................... ['0.5', '/data/a b']\n"
      "  use_distributed_optimizer ....................... True\n"
      "  wandb_project ................................... \n"
      "-------------------- end of arguments ---------------------\n"
      "compiling dataset index builder ...\n"
      " > padded vocab (size: 50257) with 175 dummy tokens (new size: 50432)\n");
  CHECK(s.integer("num_layers") == 32);
  CHECK(s.integer("seq_length") == 4096);
  CHECK_FALSE(s.has("recompute_granularity"));
  CHECK(said(s, "data_path") == "['0.5', '/data/a b']");
  CHECK(s.flag("use_distributed_optimizer") == true);
  CHECK_FALSE(s.has("wandb_project"));
  CHECK(s.integer("padded_vocab_size") == 50432);
  CHECK_FALSE(s.has("builder"));
}

TEST_CASE("NeMo's YAML, indented by its logger, lists and the lines after it left out") {
  const Settings s = read(
      "[NeMo I 2024-05-01 10:00:00 megatron_gpt_pretraining:35] \n"
      "    trainer:\n"
      "      devices: 8\n"
      "      precision: bf16-mixed # or 16\n"
      "    model:\n"
      "      num_layers: 24\n"
      "      kv_channels: null\n"
      "      tokenizer:\n"
      "        type: 'GPT2BPETokenizer'\n"
      "      data:\n"
      "        data_prefix:\n"
      "        - 1.0\n"
      "        - /data/x: y\n"
      "        seq_length: 2048\n"
      "      optim:\n"
      "        name: distributed_fused_adam\n"
      "[NeMo I 2024-05-01 10:00:09 megatron_base_model:604] Padded vocab_size: 50432, original\n"
      "num_layers: 7\n");
  CHECK(s.integer("trainer.devices") == 8);
  CHECK(said(s, "trainer.precision") == "bf16-mixed");
  CHECK(s.integer("model.num_layers") == 24);
  CHECK_FALSE(s.has("model.kv_channels"));
  CHECK(said(s, "model.tokenizer.type") == "GPT2BPETokenizer");
  CHECK(s.integer("model.data.seq_length") == 2048);
  CHECK(said(s, "model.optim.name") == "distributed_fused_adam");
  CHECK(s.integer("padded_vocab_size") == 50432);
  CHECK_FALSE(s.has("num_layers"));
}

TEST_CASE("torchtitan's model: arguments in one line, with inner ones, or JSON in many") {
  const Settings line = read(
      "[rank0]:[titan] 2025-11-25 - root - INFO - Building llama3 8B with "
      "TransformerModelArgs(_enforced='a, b', dim=4096, n_kv_heads=None, "
      "rope=RoPE(factor=8.0, dim=9), ffn_dim_multiplier=1.3, n_layers=32)\n");
  CHECK(said(line, "model.name") == "llama3");
  CHECK(said(line, "model.flavor") == "8B");
  CHECK(line.integer("args.dim") == 4096);
  CHECK(line.integer("args.n_layers") == 32);
  CHECK_FALSE(line.has("args.n_kv_heads"));
  const Settings json = read(
      "[titan] 2026-01-16 - root - INFO - Building qwen3 0.6Bwith {\n  \"dim\": 1024,\n"
      "  \"eos\": \"}\",\n  \"moe_args\": {\n    \"top_k\": 1\n  },\n  \"n_layers\": 28\n}\n"
      "[titan] 2026-01-16 - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.18GiB "
      "memory\n");
  CHECK(said(json, "model.flavor") == "0.6B");
  CHECK(json.integer("args.n_layers") == 28);
  CHECK(json.integer("args.moe_args.top_k") == 1);
  CHECK(said(json, "gpu") == "NVIDIA H100 80GB HBM3");
}

TEST_CASE("torchtitan's configuration as TOML and as JSON") {
  const Settings toml = read(
      "[training]\nseq_len = 8192  # tokens\nlocal_batch_size = 2\n\n[parallelism]\n"
      "data_parallel_shard_degree = -1\ntensor_parallel_degree = 2\n"
      "[activation_checkpoint]\nmode = \"full\"\nstep: 1  loss: 2  x = 3\n");
  CHECK(toml.integer("training.seq_len") == 8192);
  CHECK(toml.integer("parallelism.data_parallel_shard_degree") == -1);
  CHECK(said(toml, "activation_checkpoint.mode") == "full");
  const Settings json = read(
      "2025 - root - INFO - Running with args: {\n[rank0]:  \"training\": {\"seq_len\": 8192},\n"
      "[rank0]:  \"compile\": {\"enable\": false, \"components\": [\"model\"]}\n[rank0]:}\n");
  CHECK(json.integer("training.seq_len") == 8192);
  CHECK(json.flag("compile.enable") == false);
}

TEST_CASE("torchtitan's mesh in both spellings, batch and sequence, recompute") {
  const Settings old = read(
      "root - INFO - Building 3-D device mesh with ['pp', 'dp_shard', 'tp'], [2, 4, 8]\n"
      "root - INFO - Training starts at step 1, with local batch size 1, global batch size 8, "
      "sequence length 8192, total steps 100 (warmup 200)\n"
      "root - INFO - Applied selective activation checkpointing to the model\n");
  CHECK(old.integer("mesh.pp") == 2);
  CHECK(old.integer("mesh.dp_shard") == 4);
  CHECK(old.integer("mesh.tp") == 8);
  CHECK(old.integer("training.global_batch_size") == 8);
  CHECK(old.integer("training.seq_len") == 8192);
  CHECK(said(old, "activation_checkpoint.mode") == "selective");
  const Settings now =
      read("Building device mesh with parallelism: pp=1, dp_replicate=2, dp_shard=4, cp=1, tp=1\n");
  CHECK(now.integer("mesh.dp_replicate") == 2);
  CHECK(now.integer("mesh.tp") == 1);
}

TEST_CASE("an object cut by other ranks' lines is left aside, and what follows is read") {
  const Settings s = read(
      "INFO - Running with configs: {\n\"a\": 1,\nBuilding nonsense {\n}\n}\n"
      "  num_layers ...................................... 32\n");
  CHECK_FALSE(s.has("a"));
  CHECK(s.integer("num_layers") == 32);
}

TEST_CASE("launch arguments: a script's lines, one command, variables that nobody knows") {
  const Settings script = read(
      "MODEL_ARGS=(\n    --num-layers 96 \n    --swiglu \\\n    --disable-bias-linear # none\n"
      "    --tensor-model-parallel-size $TP\n    --bf16\n)\n");
  CHECK(script.integer("num_layers") == 96);
  CHECK(script.flag("swiglu") == true);
  CHECK(script.flag("add_bias_linear") == false);
  CHECK(script.flag("bf16") == true);
  CHECK(script.integer("tensor_model_parallel_size") == 1);  // as the parser has it
  const Settings command = read(
      "torchrun --nnodes 2 pretrain_gpt.py --tensor-model-parallel-size=4 --sequence-parallel "
      "--recompute-activations --num-key-value-heads 8\n");
  CHECK(command.integer("tensor_model_parallel_size") == 4);
  CHECK(command.flag("sequence_parallel") == true);
  CHECK(said(command, "recompute_granularity") == "selective");
  CHECK(command.integer("num_query_groups") == 8);
  CHECK(read("--------- arguments\n-- nothing\nsome --flag of another program\n").empty());
}

TEST_CASE("a configuration that is one JSON object, and none that begins later") {
  const Settings config = read(
      "{\n  \"train_batch_size\": 32,\n  \"zero_optimization\": {\n    \"stage\": 2\n  }\n}\n");
  CHECK(config.integer("train_batch_size") == 32);
  CHECK(config.integer("zero_optimization.stage") == 2);
  CHECK(read("a line\n{\"train_batch_size\": 32}\n").empty());
  CHECK(is_configuration("{\"zero_optimization\": {}}"));
  CHECK_FALSE(is_configuration("{\"schemaVersion\": 1, \"traceEvents\": []}"));
}
