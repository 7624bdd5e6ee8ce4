// verl's command lines: how the loss holds the logits, micro-batches by tokens, its trainers of
// demonstrations.
#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;
using workloads::LossForm;
using workloads::LossMemory;

namespace {

/// An update of 160 sequences of 1,536 tokens, with these words behind it.
LaunchInput policy(const std::string& words) {
  return input_of(
      "python3 -m verl.trainer.main_ppo data.max_prompt_length=512 \\\n"
      "  data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen3-8B \\\n"
      "  actor_rollout_ref.actor.ppo_mini_batch_size=160 trainer.n_gpus_per_node=8 \\\n"
      "  trainer.nnodes=1 " +
      words + "\n");
}

const std::string fsdp_sft =
    "nproc_per_node=$1\nshift 1\n"
    "torchrun --nnodes=1 --nproc_per_node=$nproc_per_node -m verl.trainer.fsdp_sft_trainer \\\n"
    "  data.max_length=2048 data.train_batch_size=64 model.partial_pretrain=Qwen/Qwen3-8B ";

const std::string engine_sft =
    "torchrun --nnodes=1 --nproc-per-node=8 -m verl.trainer.sft_trainer model.path=Qwen/Qwen3-8B "
    "\\\n  data.train_batch_size=96 data.max_length=2048 data.max_token_len_per_gpu=16384 ";

}  // namespace

TEST_CASE("verl's loss holds 16-bit logits once, and once more in backward") {
  const Scenario plain = scenario_of(policy("actor_rollout_ref.rollout.n=1"), 1);
  CHECK(plain.software.loss.fused);
  CHECK(plain.software.loss.memory == LossMemory::kernels);
  CHECK(plain.software.loss.form == LossForm::whole);

  const Scenario parts = scenario_of(policy("actor_rollout_ref.model.use_fused_kernels=True"), 1);
  CHECK(parts.software.loss.form == LossForm::checkpointed);
  CHECK(parts.software.loss.chunk_tokens == 512);
  CHECK(parts.software.loss.memory == LossMemory::widened);

  const LaunchInput megatron = policy(
      "actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.model.use_fused_kernels=True");
  CHECK_FALSE(scenario_of(megatron, 1).software.loss.fused);
  CHECK(says(megatron.facts.notes, "the forecast has the logits whole"));
}

TEST_CASE("verl's entropy is named where it is computed in an update") {
  using Names = std::vector<std::string>;
  CHECK(policy("actor_rollout_ref.actor.entropy_coeff=0").understanding.unsaid == Names{});
  CHECK(policy("actor_rollout_ref.actor.entropy_coeff=0.001").understanding.unsaid ==
        Names{"actor_rollout_ref.actor.entropy_coeff = 0.001 (entropy's copies of the logits)"});
}

TEST_CASE("verl's micro-batches by tokens are whole sequences that divide a replica's") {
  const std::string dynamic =
      "actor_rollout_ref.actor.use_dynamic_bsz=True "
      "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=24000 ";
  const LaunchInput input = policy(dynamic);  // 15 fit, 10 divide the 20 of a replica
  CHECK(scenario_of(input, 1).batch.micro_batch == 10);
  CHECK(scenario_of(input, 2).batch.micro_batch == 10);
  CHECK(scenario_of(input, 4).batch.micro_batch == 5);
  CHECK(says(input.facts.notes, "as many, up to 15, as divide what a replica has"));
  // Ranks that share a sequence have their tokens together, over Megatron as well.
  const Scenario shared =
      scenario_of(policy(dynamic + "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2"), 1);
  CHECK(shared.batch.micro_batch == 20);
  const Scenario megatron =
      scenario_of(policy(dynamic + "actor_rollout_ref.actor.megatron.context_parallel_size=2"), 1);
  CHECK(megatron.batch.micro_batch == 20);
}

TEST_CASE("verl's micro-batch of all ranks, and one that divides nothing") {
  const LaunchInput all = policy("actor_rollout_ref.actor.ppo_micro_batch_size=32");
  CHECK(scenario_of(all, 1).batch.micro_batch == 4);
  const LaunchInput odd = policy("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8");
  CHECK(says(odd.facts.notes, "of 8 here, does not divide the 20 sequences"));
  CHECK_THROWS_WITH(scenario_of(odd, 1), Contains("does not divide the 20 sequences"));
}

TEST_CASE("verl's unpadded rows are taken to be as long as the longest, and that is said") {
  CHECK(says(policy("").facts.notes, "as long as the longest, 1536 tokens"));
  CHECK_FALSE(says(policy("actor_rollout_ref.model.use_remove_padding=False").facts.notes,
                   "as long as the longest"));
}

TEST_CASE("verl's FSDP runs the experts of transformers") {
  const LaunchInput input = policy("actor_rollout_ref.model.path=Qwen/Qwen3-30B-A3B");
  const Scenario s = scenario_of(input, 2);
  CHECK(s.software.framework == "pytorch-fsdp1");
  CHECK(s.software.experts.runs);
  CHECK(s.software.experts.products == workloads::GroupedProducts::loop);
  CHECK_FALSE(s.software.experts.fused_router);
  CHECK(policy("").facts.find("software.experts") == nullptr);
}

TEST_CASE("verl's adapters over Megatron lie beside a rank's experts too") {
  const auto shape = [](const std::string& path, const std::string& words) {
    return scenario_of(policy("actor_rollout_ref.actor.strategy=megatron "
                              "actor_rollout_ref.model.lora.rank=16 actor_rollout_ref.model.path=" +
                              path + " " + words),
                       1)
        .model.lora;
  };
  const std::string experts =
      "Qwen/Qwen3-30B-A3B actor_rollout_ref.actor.megatron.expert_model_parallel_size=8";
  CHECK(shape(experts, "").experts);
  CHECK_FALSE(shape("Qwen/Qwen3-8B", "").experts);
  CHECK_FALSE(
      shape(experts, "actor_rollout_ref.model.lora.target_modules=['linear_qkv','linear_proj']")
          .experts);
}

TEST_CASE("verl's FSDP trainer of demonstrations") {
  const LaunchInput input = input_of(
      fsdp_sft + "data.micro_batch_size=16 model.lora_rank=8 model.target_modules=[q_proj,v_proj]");
  CHECK(input.understanding.unknown == std::vector<std::string>{});
  const Scenario s = scenario_of(input, 1);
  CHECK(s.software.framework == "pytorch-fsdp2");
  CHECK(s.batch.sequence == 2048);
  CHECK(s.global_batch == 64);
  CHECK(s.batch.micro_batch == 4);
  CHECK(s.model.lora.rank == 8);
  CHECK(s.plan.data == workloads::DataParallel::zero3);
  CHECK(s.plan.recompute == workloads::Recompute::full);
  CHECK(s.software.loss.memory == LossMemory::widened);
  CHECK(input.facts.ranks == 8);
  CHECK(says(input.facts.notes, "Only a shell knows how many GPUs of a node train: 8"));
  CHECK(says(input.facts.notes, "verl no longer reads it"));
  CHECK_FALSE(says(input.facts.notes, "as long as the longest"));

  const Scenario shared = scenario_of(
      input_of(fsdp_sft + "model.strategy=fsdp model.enable_gradient_checkpointing=False "
                          "ulysses_sequence_parallel_size=2 use_remove_padding=true"),
      1);
  CHECK(shared.software.framework == "pytorch-fsdp1");
  CHECK(shared.plan.context == 2);
  CHECK(shared.plan.recompute == workloads::Recompute::none);
  CHECK(shared.software.loss.memory == LossMemory::kernels);
}

TEST_CASE("verl's trainer of demonstrations by engines") {
  const Scenario s =
      scenario_of(input_of(engine_sft + "engine.strategy=fsdp2 engine.fsdp_size=4"), 1);
  CHECK(s.software.framework == "pytorch-fsdp2");
  CHECK(s.plan.shard_degree == 4);
  CHECK(s.batch.micro_batch == 6);  // 8 fit, 6 divide the 12 of a replica
  CHECK(s.software.loss.fused);

  const LaunchInput megatron =
      input_of(engine_sft +
               "engine=megatron optim=megatron engine.tensor_model_parallel_size=2 "
               "engine.pipeline_model_parallel_size=2 data.use_dynamic_bsz=False");
  CHECK(megatron.understanding.unknown == std::vector<std::string>{});
  const Scenario cut = scenario_of(megatron, 1);
  CHECK(cut.software.framework == "megatron-core");
  CHECK(cut.plan.tensor == 2);
  CHECK(cut.plan.sequence_parallel);
  CHECK(cut.plan.pipeline == 2);
  CHECK(cut.batch.micro_batch == 4);
  CHECK(cut.plan.data == workloads::DataParallel::zero1);
}

TEST_CASE("a program of verl that samples is no training") {
  CHECK_THROWS_WITH(input_of("python3 -m verl.trainer.main_generation model.path=Qwen/Qwen3-8B "
                             "trainer.nnodes=1 rollout.prompt_length=1024\n"),
                    Contains("trains nothing"));
}
