// Commands of TRL: its verbs, its scripts under accelerate, configurations by name.
#include <filesystem>
#include <fstream>

#include "tests/own_folder.hpp"
#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

LaunchInput command(const std::string& words) {
  const LaunchInput input = input_of(words + " --model_name_or_path Qwen/Qwen3-8B\n", "run.sh");
  CHECK(input.format == "the arguments of transformers and TRL");
  CHECK(input.understanding.unknown == std::vector<std::string>{});
  return input;
}

}  // namespace

TEST_CASE("TRL's own configurations are called by name, and are of eight GPUs unless told") {
  for (const auto& [name, data] : {std::pair{"zero1", "\"zero1\""},
                                   {"zero2", "\"zero2\""},
                                   {"zero3", "\"zero3\""},
                                   {"fsdp1", "\"zero3\""},
                                   {"fsdp2", "\"zero3\""},
                                   {"multi_gpu", "\"ddp\""}}) {
    INFO(name);
    const LaunchInput input = command("trl sft --packing --accelerate_config " + std::string(name));
    CHECK(text_of(input.facts, "plan.data") == data);
    CHECK(input.facts.ranks == 8);
    CHECK_FALSE(says(input.facts.notes, "not beside the file"));
    CHECK_FALSE(says(input.facts.notes, "every GPU holds all of them"));
  }
  CHECK(command("trl sft --accelerate_config single_gpu").facts.ranks == 1);
  CHECK(command("trl sft --accelerate_config fsdp2 --num_processes 16").facts.ranks == 16);
}

TEST_CASE("what transformers' parser has a --no_ for is off") {
  CHECK(text_of(command("trl sft --packing").facts, "plan.recompute") == "\"full\"");
  CHECK(text_of(command("trl sft --no_gradient_checkpointing").facts, "plan.recompute") ==
        "\"none\"");
  command("trl dpo --no_remove_unused_columns");
}

TEST_CASE("methods with pairs, samples or a second model say that these are not forecast") {
  const auto named = [](const std::string& words) {
    return says(command(words).facts.notes, "pairs of answers, samples and second models");
  };
  CHECK(named("trl dpo --max_length 512"));
  CHECK(named("accelerate launch trl/scripts/kto.py --max_length 512"));
  CHECK(named("accelerate launch examples/scripts/dpo_vlm.py --max_length 512"));
  CHECK_FALSE(named("accelerate launch trl/scripts/sft.py --max_length 512"));
  const LaunchInput sampled =
      command("accelerate launch examples/scripts/grpo_vlm.py --max_completion_length 768");
  CHECK(text_of(sampled.facts, "model.sequence") == "768");
}

TEST_CASE("adapters of all linear layers lie where the model has linear layers") {
  const auto targets = [](const std::string& model, const std::string& list) {
    const LaunchInput input = input_of("trl sft --packing --use_peft --lora_target_modules " +
                                           list + " --model_name_or_path " + model + "\n",
                                       "run.sh");
    CHECK(says(input.facts.notes, "no linear layers in transformers 5") ==
          (model.find("A3B") != std::string::npos || model.find("MoE") != std::string::npos));
    return text_of(input.facts, "model.lora_targets");
  };
  const std::string attention = R"(["q", "k", "v", "o"])",
                    all = R"(["q", "k", "v", "o", "gate", "up", "down"])";
  CHECK(targets("Qwen/Qwen3-8B", "all-linear") == all);
  CHECK(targets("Qwen/Qwen3-30B-A3B", "all-linear") == attention);  // experts in every layer
  CHECK(targets("Qwen/Qwen3-30B-A3B", "q_proj k_proj v_proj o_proj up_proj") == attention);
  CHECK(targets("Qwen/Qwen1.5-MoE-A2.7B", "all-linear") == all);  // its shared expert
  CHECK(targets("openai-community/gpt2", "all-linear") == R"(["q", "k", "v", "o", "up", "down"])");
  const LaunchInput input = input_of(
      "trl sft --packing --use_peft --lora_target_modules all-linear --model_name_or_path "
      "Qwen/Qwen3-30B-A3B --accelerate_config zero3\n",
      "run.sh");
  CHECK(scenario_of(input, 1).model.lora.targets.has(workloads::LoraTarget::o));
}

TEST_CASE("a script that is started without a model says its settings by literals of its own") {
  const std::filesystem::path folder = tests::own_folder() / "literals";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "mine.py")
      << "from transformers import AutoModelForCausalLM\n\"\"\"name = 'other/model'\"\"\"\n"
         "name = \"Qwen/Qwen3-8B\"  # name = 'another/model'\nname = 'a/later-one'\nbatch = 4\n"
         "mesh = ParallelismConfig(cp_size=2, cp_handler=Handler(cp_comm_strategy='allgather'))\n"
         "args = TrainingArguments(\n    per_device_train_batch_size=batch,\n"
         "    output_dir=make('a, b'), gradient_accumulation_steps=2, bf16=True)\n"
         "peft = LoraConfig(r=64, target_modules=[\"q_proj\", \"v_proj\"])\n"
         "model = AutoModelForCausalLM.from_pretrained(name)\n";
  const auto started = [&](const std::string& words) {
    return input_of("accelerate launch " + words + "\n", (folder / "run.sh").string());
  };
  const LaunchInput input = started("--num_processes 8 mine.py");
  for (const auto& [key, value] : {std::pair{"model.name", "\"Qwen/Qwen3-8B\""},
                                   {"plan.context", "2"},
                                   {"plan.recompute", "\"none\""},
                                   {"precision.compute", "\"bf16\""},
                                   {"batch.micro_batch", "4"},
                                   {"model.lora_rank", "64"},
                                   {"model.lora_targets", "[\"q\", \"v\"]"}})
    CHECK(text_of(input.facts, key) == value);
  CHECK(says(input.facts.notes, "as literals in mine.py have it"));
  CHECK(input.understanding.unknown == std::vector<std::string>{});
  const LaunchInput other = started("--num_processes 8 mine.py --model_name_or_path Qwen/Qwen3-4B");
  CHECK(text_of(other.facts, "model.name") == "\"Qwen/Qwen3-4B\"");
  CHECK(text_of(other.facts, "batch.micro_batch") == "8");  // of its parser, not of the literals
}
