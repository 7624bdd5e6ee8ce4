// Scripts around Megatron-Bridge: jobs of Slurm, loops over settings, recipes by their name.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "engine/check.hpp"
#include "sim/inputs/launchers.hpp"
#include "sim/inputs/recipe_source.hpp"
#include "tests/own_folder.hpp"
#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

const std::string job =
    "#!/bin/bash\n#SBATCH --nodes=3\n#SBATCH --gpus-per-node=8  # or 4\n"
    "MODEL=llama3_8b\nCONFIGS=(\"2,1,True\" \"4,2,True\")\n"
    "SRUN=\"srun --mpi=pmix --container-image=$IMAGE\"\n"
    "for CONFIG in \"${CONFIGS[@]}\"; do\n  IFS=',' read -r TP PP SP <<< \"$CONFIG\"\n"
    "  OVERRIDES=\"\\\n    model.tensor_model_parallel_size=$TP \\\n"
    "    model.pipeline_model_parallel_size=$PP \\\n    model.sequence_parallel=$SP \\\n"
    "    train.global_batch_size=48 train.micro_batch_size=1\"\n"
    "  CMD=\"uv run --no-sync python scripts/training/run_recipe.py\"\n"
    "  CMD=\"$CMD --recipe ${MODEL}_NAME_config\"\n  CMD=\"$CMD $OVERRIDES\"\n"
    "  $SRUN bash -c \"$CMD\"\ndone\n";

std::string with(const std::string& recipe) {
  std::string out = job;
  return out.replace(out.find("NAME"), 4, recipe);
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string integer(const LaunchInput& input, const char* key) { return text_of(input.facts, key); }

}  // namespace

TEST_CASE("a job of Slurm that loops over settings: the first, on the nodes of its head") {
  const LaunchInput input = input_of(with("pretrain"), "/nowhere/job.sh");
  CHECK_THAT(input.format, Contains("Megatron-Bridge"));
  CHECK(input.facts.ranks == 24);
  CHECK(input.facts.gpus_per_node == 8);
  CHECK(integer(input, "model.name") == "\"llama3-8b\"");
  CHECK(integer(input, "plan.tensor") == "2");
  CHECK(integer(input, "plan.pipeline") == "1");
  CHECK(integer(input, "plan.sequence_parallel") == "true");
  CHECK(integer(input, "batch.global") == "48");
  CHECK(integer(input, "model.sequence") == "8192");  // of the registry
  CHECK(input.understanding.unknown.empty());         // --no-sync is uv's
  CHECK(input.understanding.open.empty());
}

TEST_CASE("a recipe of adapters trains adapters, beside experts too") {
  CHECK(integer(input_of(with("sft"), "job.sh"), "model.lora_rank").empty());
  const LaunchInput dense = input_of(with("peft"), "job.sh");
  CHECK(integer(dense, "model.lora_rank") == "32");
  CHECK_THAT(integer(dense, "model.lora_targets"), Contains("down"));
  std::string text = with("peft");
  text.replace(text.find("llama3_8b"), 9, "gpt_oss_20b");
  text.replace(text.find("train.micro"), 0, "peft.dim=16 ");
  const LaunchInput experts = input_of(text, "job.sh");
  CHECK(integer(experts, "model.lora_rank") == "16");
  CHECK(integer(experts, "model.lora_experts") == "true");
  CHECK(integer(dense, "model.lora_experts").empty());
  CHECK_THAT(integer(dense, "model.lora_targets"), Contains("gate"));
  text.replace(text.find("gpt_oss_20b"), 11, "nemotron_3_nano");
  CHECK_THAT(integer(input_of(text, "job.sh"), "model.lora_targets"), !Contains("gate"));
  text.replace(text.find("nemotron_3_nano"), 15, "deepseek_v3");
  for (const char* said : {"", "model.mtp_num_layers=1 "}) {
    std::string further = text;
    further.replace(further.find("train.micro"), 0, said);
    const LaunchInput input = input_of(further, "job.sh");
    CHECK(integer(input, "model.mtp_layers") == "0");
    CHECK(says(input.facts.notes, "beside a module for further tokens (MTP)"));
  }
  CHECK(integer(dense, "model.mtp_layers").empty());
}

TEST_CASE("in a checkout the driver is no recipe, and the recipe's own source says the rest") {
  const std::filesystem::path root = tests::own_folder() / "checkout",
                              recipes = root / "src/megatron/bridge/recipes";
  write(root / "scripts/training/run_recipe.py",
        "from megatron.bridge.training import pretrain\n\n\ndef main():\n    pretrain(x)\n");
  write(recipes / "common.py",
        "def _sft_common():\n    cfg = Container(\n        train=Train(\n"
        "            global_batch_size=96,\n            micro_batch_size=1,\n        ),\n"
        "        mixed_precision=\"bf16_mixed\",\n    )\n    return cfg\n");
  write(
      recipes / "small/h100/small.py",
      "from megatron.bridge import AutoBridge\n\nLONG: int = 4 * 512  # tokens\n_ID = "
      "\"Qwen/Qwen3-8B\"\n\n\n"
      "def _model():\n    model = cast(Provider, AutoBridge.from_hf(_ID).to_provider(load=False))\n"
      "    model.tensor_model_parallel_size = 8  # of one node\n    return model\n\n\n"
      "def _wide(cfg):\n    cfg.train.micro_batch_size = 2\n    return cfg\n\n\n"
      "def small_sft_8gpu_config():\n    \"\"\"Say it.\"\"\"\n    cfg = _sft_common()\n"
      "    cfg.model = _model()\n    cfg.model.num_layers = 3\n    cfg.model.seq_length = LONG\n"
      "    cfg.dataset.seq_length = 2048\n    cfg.model.context_parallel_size = 2\n    cfg = "
      "_wide(cfg)\n    cfg = unknown(cfg)\n"
      "    return cfg\n");
  write(recipes / "small/small.py",
        "from megatron.bridge.recipes.small.h100.small import (\n"
        "    small_sft_8gpu_config as _small_sft_config,\n)\n\n\n"
        "def small_sft_config():\n    return _small_sft_config()\n");
  const Settings alone = settings_of_recipe("small_sft_config", (root / "a/b/job.sh").string());
  CHECK(*alone.find("model.hf_model_id") == "Qwen/Qwen3-8B");
  CHECK(*alone.find("model.tensor_model_parallel_size") == "8");
  CHECK(*alone.find("train.micro_batch_size") == "2");
  CHECK(*alone.find("model.seq_length") == "2048");
  CHECK_FALSE(alone.has("model.num_layers"));  // the model's name says its shape
  CHECK(settings_of_recipe("other_config", (root / "job.sh").string()).empty());

  std::string text = with("sft");
  text.replace(text.find("llama3_8b"), 9, "small");
  text.replace(text.find("train.micro_batch_size=1"), 24, "--seq_length 4096");
  write(root / "a/b/job.sh", text);
  const LaunchInput input = input_of(text, (root / "a/b/job.sh").string());
  CHECK(integer(input, "model.name") == "\"Qwen/Qwen3-8B\"");
  CHECK(integer(input, "plan.context") == "2");
  CHECK(integer(input, "plan.tensor") == "2");  // the script's
  CHECK(integer(input, "batch.micro_batch") == "2");
  CHECK(integer(input, "model.sequence") == "4096");  // the script's, under another name
  CHECK(says(input.facts.notes, "small_sft_config, which small.py of this checkout has"));
}

TEST_CASE("a recipe that is called as only one model begins is of that") {
  const auto model = [](const std::string& stem) {
    std::string text = with("sft");
    text.replace(text.find("llama3_8b"), 9, stem);
    return input_of(text, "job.sh");
  };
  const LaunchInput ultra = model("nemotron_3_ultra");
  CHECK(integer(ultra, "model.name") == "\"nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16\"");
  CHECK(says(ultra.facts.notes, "'nemotron_3_ultra' is taken as"));
  CHECK(says(model("deepseek_coder").facts.notes, "No entry is near"));  // several begin so
  CHECK(integer(model("nemotron_3_super"), "plan.expert_tensor") == "1");
  CHECK(integer(model("gpt_oss_20b"), "plan.expert_tensor").empty());
}

TEST_CASE("a script that is no training says so, and what it calls") {
  const auto refusal = [](const std::string& text) {
    const NamedText file{"a.sh", text};
    try {
      read_launch_files({&file, 1}, catalogue());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refusal("mkdir -p x\nsbatch y.sub\n"), Contains("starts no training"));
  CHECK_THAT(refusal("torchrun --nproc_per_node 8 tools/run_text_generation_server.py "
                     "--num-layers 4 --hidden-size 64\n"),
             Contains("starts no training") && Contains("it calls tools/run_text_generation"));
  CHECK_THAT(refusal("python -m torch.distributed.run --nproc_per_node 2 x/convert.py --tp 2\n"),
             Contains("it calls x/convert.py"));
  // One that converts and then trains, trains.
  const LaunchInput both = input_of(
      "python convert.py --num-layers 9 --hidden-size 9 --a 1 --b 2 --c 3\n"
      "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 64\n",
      "a.sh");
  CHECK(integer(both, "model.layers") == "4");
  const NamedText tests{"a.yaml", "MODEL_ARGS:\n  --num-layers: 4\nMODE: inference\n"};
  CHECK_THROWS_WITH(read_launch_files({&tests, 1}, catalogue()), Contains("its MODE is inference"));
}

TEST_CASE("Slurm's head says nodes and processes where torchrun is told neither") {
  const auto head = [](const std::string& text) {
    const Settings found = slurm_head(text);
    const std::string *nodes = found.find("nnodes"), *each = found.find("nproc_per_node");
    return (nodes == nullptr ? "?" : *nodes) + " x " + (each == nullptr ? "?" : *each);
  };
  CHECK(head("#SBATCH --nodes 2\n#SBATCH --gres=gpu:h100:4\n") == "2 x 4");
  CHECK(head("#SBATCH -N 2 --ntasks-per-node=8\n") == "2 x 8");
  CHECK(head("#SBATCH --nodes=2\n#SBATCH --ntasks=16\n") == "2 x 8");
  CHECK(head("# SBATCH --nodes=2\necho '#SBATCH --nodes=3'\n") == "? x ?");
  const std::string arguments = "train.py --num-layers 4 --hidden-size 64\n",
                    two = "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\n";
  const auto ranks = [](const std::string& text) { return input_of(text, "a.sh").facts.ranks; };
  CHECK(ranks(two + "srun python " + arguments) == 16);
  CHECK(ranks(two + "torchrun --nproc_per_node 4 --nnodes $SLURM_NNODES " + arguments) == 8);
  CHECK(ranks(two + "torchrun --nproc_per_node 4 " + arguments) == 4);  // one node, as it says
  CHECK(ranks("torchrun --nproc_per_node 4 --nnodes 3 " + arguments) == 12);
}

TEST_CASE("what runs a program for another is left out") {
  const auto without = [](std::vector<std::string> words) {
    ShellCommand command;
    command.words = std::move(words);
    leave_out_runner(command);
    return command.words;
  };
  using Words = std::vector<std::string>;
  CHECK(without({"srun", "uv", "run", "--extra", "te", "python", "a.py"}) ==
        Words{"srun", "python", "a.py"});
  CHECK(without({"uv", "run", "--no-sync", "tests"}) == Words{"uv", "run", "--no-sync", "tests"});
}
