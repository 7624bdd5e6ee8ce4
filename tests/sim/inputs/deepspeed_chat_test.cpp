// DeepSpeed-Chat's main.py: defaults of its own, its third step's actor.
#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

const std::string begins = "deepspeed main.py --data_path some/set --data_split 2,4,4 --deepspeed ";

LaunchInput chat(const std::string& words) {
  const LaunchInput input = input_of(begins + words + "\n", "run.sh");
  CHECK(input.format == "the arguments of DeepSpeed-Chat");
  CHECK(input.understanding.unknown == std::vector<std::string>{});
  return input;
}

}  // namespace

TEST_CASE("what DeepSpeed-Chat's parser has holds, not what transformers' has") {
  const LaunchInput input = chat("--model_name_or_path facebook/opt-1.3b --zero_stage 2");
  for (const auto& [key, value] : {std::pair{"plan.data", "\"zero2\""},
                                   {"plan.recompute", "\"none\""},
                                   {"precision.compute", "\"fp16\""},
                                   {"precision.gradient_reduce", "\"fp16\""},
                                   {"software.framework", "\"deepspeed\""},
                                   {"batch.micro_batch", "16"},
                                   {"model.sequence", "512"}})
    CHECK(text_of(input.facts, key) == value);
  CHECK(scenario_of(input, 1).global_batch == 128);
  CHECK(text_of(chat("--model_name_or_path facebook/opt-1.3b --dtype bf16").facts,
                "precision.compute") == "\"bf16\"");
  CHECK(text_of(chat("--model_name_or_path facebook/opt-1.3b").facts, "plan.data") == "\"ddp\"");
}

TEST_CASE("its third step is one update of the actor on prompt and answer") {
  const LaunchInput input = chat(
      "--actor_model_name_or_path AdamG012/chat-opt-1.3b-sft-deepspeed "
      "--critic_model_name_or_path mine/critic --per_device_training_batch_size 4 "
      "--per_device_generation_batch_size 4 --max_prompt_seq_len 128 --max_answer_seq_len 384 "
      "--actor_zero_stage 3 --critic_zero_stage 2 --actor_gradient_checkpointing --offload");
  const Scenario s = scenario_of(input, 1);
  CHECK(s.model.name == "facebook/opt-1.3b");
  CHECK(s.batch.sequence == 512);
  CHECK(s.batch.micro_batch == 4);
  CHECK(s.plan.data == workloads::DataParallel::zero3);
  CHECK(s.plan.offload.optimizer == 1.0);
  CHECK(s.plan.recompute == workloads::Recompute::full);
  CHECK(says(input.facts.notes, "one update of the actor"));
}

TEST_CASE("its adapters are alone trained with only_optimize_lora") {
  const std::string words = "--model_name_or_path meta-llama/Llama-2-7b-hf --lora_dim 64 ";
  CHECK(scenario_of(chat(words + "--only_optimize_lora"), 1).model.lora.rank == 64);
  const LaunchInput both = chat(words);
  CHECK(both.facts.find("model.lora_rank") == nullptr);
  CHECK(says(both.facts.notes, "trained beside their adapters"));
}
