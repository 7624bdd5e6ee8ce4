// Commands of TRL: its verbs, its scripts under accelerate, configurations by name.
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
