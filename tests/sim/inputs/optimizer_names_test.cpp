// Optimizers by the names that frameworks have for them.
#include <catch2/catch.hpp>

#include "sim/inputs/formats.hpp"
#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;

TEST_CASE("optimizers by the names of transformers, axolotl and Megatron") {
  const auto form = [](const std::string& line) {
    const LaunchInput input = input_of(
        "model_name_or_path: Qwen/Qwen3-8B\nmax_length: 4096\n"
        "per_device_train_batch_size: 2\n" +
        line);
    return scenario_of(input, 1).plan.optimizer;
  };
  using enum workloads::Optimizer;
  CHECK(form("") == adam);
  CHECK(form("optim: adamw_torch_fused\n") == adam);
  CHECK(form("optim: adamw_bnb_8bit\n") == adam_8bit);
  CHECK(form("optim: paged_adamw_8bit\n") == adam_8bit);
  CHECK(form("optim: adafactor\n") == adafactor);
  CHECK(form("optim: sgd\n") == sgd);

  CHECK(text_of(input_of("model_name_or_path: Qwen/Qwen3-8B\nfinetuning_type: full\n"
                         "cutoff_len: 4096\nuse_muon: true\n")
                    .facts,
                "plan.optimizer") == "\"muon\"");

  const auto deepspeed = [](const std::string& type) {
    return input_of(
               "{\"train_micro_batch_size_per_gpu\": 2, \"zero_optimization\": {\"stage\": 2},\n"
               " \"optimizer\": {\"type\": \"" +
                   type + "\"}}",
               "ds.json")
        .facts;
  };
  CHECK(deepspeed("AdamW").find("plan.optimizer") == nullptr);
  CHECK(text_of(deepspeed("Muon"), "plan.optimizer") == "\"muon\"");
  CHECK(text_of(deepspeed("SGD"), "plan.optimizer") == "\"sgd\"");
  CHECK(says(deepspeed("OneBitAdam").notes, "no key expresses this optimizer"));
  CHECK(says(deepspeed("Lion").notes, "no key expresses this optimizer"));

  const auto megatron = [](const std::string& more) {
    return scenario_of(
        input_of("torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 \\\n"
                 "  --num-attention-heads 8 --seq-length 1024 --micro-batch-size 1 \\\n"
                 "  --global-batch-size 16 --vocab-size 32000 \\\n"
                 "  --max-position-embeddings 1024 --bf16 " +
                 more + "\n"),
        1);
  };
  CHECK(megatron("--use-distributed-optimizer").plan.optimizer == adam);
  CHECK(megatron("--optimizer sgd").plan.optimizer == sgd);
  const Scenario owners = megatron("--optimizer dist_muon");
  CHECK(owners.plan.optimizer == muon);
  CHECK(owners.plan.data == workloads::DataParallel::zero1);
  CHECK_FALSE(owners.software.data.reduce_scatter);
  CHECK(megatron("--optimizer muon").plan.data == workloads::DataParallel::ddp);
}

TEST_CASE("optimizers of torchtitan by its TOML and by its groups of 2026") {
  const auto toml = [](const std::string& name, const std::string& value) {
    Settings settings;
    for (const auto& [key, said] : {std::pair{"training.seq_len", "4096"},
                                    {"model.name", "llama3"},
                                    {"model.flavor", "8B"},
                                    {"training.local_batch_size", "1"}})
      settings.set(key, said);
    settings.set("optimizer." + name, value);
    Facts facts;
    add_facts(facts, settings, catalogue(), "a.toml");
    return facts;
  };
  CHECK(toml("name", "AdamW").find("plan.optimizer") == nullptr);
  CHECK(says(toml("name", "Lion").notes, "no key expresses this optimizer"));
  CHECK(text_of(toml("implementation", "foreach"), "software.optimizer") == "\"foreach\"");
  CHECK(text_of(toml("early_step_in_backward", "true"), "plan.optimizer_in_backward") == "true");
  const Facts python = input_of(
                           "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 \\\n"
                           "  --config llama3_8b \\\n"
                           "  --optimizer.implementation fused_opt_states_bf16\n")
                           .facts;
  CHECK(text_of(python, "precision.moments") == "\"bf16\"");
}
