// Layers of several kinds as Megatron-LM's arguments have them, a letter a layer.
#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

const std::string sizes =
    "--hidden-size 512 --num-attention-heads 8 --ffn-hidden-size 2048 --vocab-size 32000 "
    "--seq-length 1024 --max-position-embeddings 1024 --position-embedding-type none "
    "--disable-bias-linear --normalization RMSNorm --squared-relu --bf16 "
    "--untie-embeddings-and-output-weights --hidden-dropout 0.0 --global-batch-size 64 "
    "--micro-batch-size 1 ";

LaunchInput read(const std::string& arguments) {
  return input_of("torchrun --nproc_per_node 8 pretrain_hybrid.py " + sizes + arguments + "\n",
                  "a.sh");
}

}  // namespace

TEST_CASE("letters are layers, and the sizes of a state space have Megatron's defaults") {
  const LaunchInput input = read("--hybrid-layer-pattern M-M*- --num-layers 99");
  CHECK(text_of(input.facts, "model.layers") == "5");
  CHECK(text_of(input.facts, "model.layer_pattern") == "\"M - M * -\"");
  CHECK(text_of(input.facts, "model.ssm_heads") == "16");
  CHECK(text_of(input.facts, "model.ssm_head_dim") == "64");
  CHECK(text_of(input.facts, "model.ssm_groups") == "8");
  CHECK(text_of(input.facts, "model.ssm_state") == "128");
  CHECK(says(input.facts.notes, "position_embedding_type = none"));
  CHECK(input.understanding.unsaid.empty());
  const Scenario s = scenario_of(input, 1);
  CHECK(s.model.layers == 5);
  CHECK(s.model.state_space.heads == 16);
  const LaunchInput said = read(
      "--hybrid-override-pattern M- --mamba-head-dim 32 --mamba-num-heads 24 "
      "--mamba-num-groups 4 --mamba-state-dim 256");
  CHECK(text_of(said.facts, "model.layers") == "2");  // "M-" is two layers
  CHECK(text_of(said.facts, "model.layer_pattern") == "\"M -\"");
  CHECK(text_of(said.facts, "model.ssm_heads") == "24");
  CHECK(text_of(said.facts, "model.ssm_state") == "256");
}

TEST_CASE("bars between letters are stages, what follows a slash are modules for further tokens") {
  const LaunchInput input = read(
      "--hybrid-layer-pattern 'M-M|*-M-|ME/*E' --pipeline-model-parallel-size 3 --num-experts 4 "
      "--moe-router-topk 2");
  CHECK(text_of(input.facts, "model.layers") == "9");
  CHECK(text_of(input.facts, "plan.stage_layers") == "[3, 4, 2]");
  CHECK(text_of(input.facts, "model.mtp_layers") == "1");
  CHECK(text_of(input.facts, "model.expert_ffn") == "2048");
  CHECK(text_of(input.facts, "model.ffn_hidden") == "2048");
  CHECK_THROWS_WITH(read("--hybrid-layer-pattern MD"),
                    Contains("layers of kind D") && Contains("state space"));
}

TEST_CASE("a model of letters is the one of its configuration at Hugging Face") {
  const std::string name = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16";
  const LaunchInput input = input_of(
      "MODEL=\"--hybrid-layer-pattern MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME "
      "--mamba-num-heads 64 --hidden-size 2688 --num-attention-heads 32 --group-query-attention "
      "--num-query-groups 2 --kv-channels 128 --ffn-hidden-size 1856 --num-experts 128 "
      "--moe-router-topk 6 --moe-shared-expert-intermediate-size 3712 --seq-length 8192 "
      "--moe-router-score-function sigmoid --moe-router-enable-expert-bias --squared-relu "
      "--disable-bias-linear --normalization RMSNorm --position-embedding-type none "
      "--untie-embeddings-and-output-weights --hidden-dropout 0.0 --global-batch-size 64\"\n"
      "TOKENIZER_MODEL=" +
          name + "\n",
      "conf.sh");
  const Scenario ours = scenario_of(input, 4);
  LaunchInput theirs;
  theirs.facts.set("model.name", toml_text(name, ""), "");
  for (const auto& [key, value] :
       {std::pair{"software.framework", "megatron-core"}, {"plan.data", "zero1"}})
    theirs.facts.set(key, toml_text(value, ""), "");
  for (const auto& [key, value] : {std::pair{"model.sequence", 8192}, {"batch.global", 64}})
    theirs.facts.set(key, {std::int64_t{value}, ""}, "");
  CHECK(ours.model == scenario_of(theirs, 4).model);
}

TEST_CASE("an argument without a value takes none of another variable") {
  const LaunchInput input = input_of(
      "MODEL_ARGS=\" \\\n  --num-layers 4 \\\n  --hidden-size 64 \\\n  --no-rope-fusion \\\n\"\n"
      "NAME=some/model\nTOKENIZER_MODEL=Qwen/Qwen3-8B\n",
      "conf.sh");
  CHECK(says(input.understanding.unsaid, "no_rope_fusion = True"));
  CHECK(text_of(input.facts, "model.vocab") == "151936");
}

TEST_CASE("experts without a width of their own have that of a dense layer") {
  CHECK(text_of(input_of("a.py --num-layers 4 --hidden-size 512 --num-experts 4\n", "a.sh").facts,
                "model.expert_ffn") == "2048");
}

TEST_CASE("latent attention rotates a part of each head, whatever positions the embedding has") {
  const LaunchInput input = input_of(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
      "--num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 "
      "--multi-latent-attention --kv-lora-rank 32 --qk-head-dim 64 --qk-pos-emb-head-dim 32 "
      "--v-head-dim 64 --micro-batch-size 1 --global-batch-size 16 "
      "--vocab-size 32000 --bf16\n",
      "run.sh");
  CHECK(scenario_of(input, 1).model.rope);
  CHECK(says(input.facts.notes, "Biases beside latent attention are left out"));
}

TEST_CASE("a command of Megatron-LM that a variable tells everything is asked for all of it") {
  const LaunchInput input = input_of(
      "#!/bin/bash\nCMD=\"python -u ${CODE}/pretrain_gpt.py ${PARAMS}\"\n"
      "srun -l sh -c \"${CMD}\"\n",
      "run.sh");
  CHECK(input.format == "the arguments of Megatron-LM");
  CHECK(missing_keys(facts_document(input.facts, "run.sh"), input.facts, catalogue()).size() == 5);
  Facts told = input.facts;
  told.set("model.sequence", {std::int64_t{8192}, ""}, "--sequence");
  told.set("batch.global", {std::int64_t{256}, ""}, "--global-batch");
  LaunchInput whole = input;
  whole.facts = told;
  CHECK(scenario_of(whole, 2, "llama3-8b").model.rope);  // no default of a model of no file
}

TEST_CASE("beside what is missing stands what refuses the plan on any number of nodes") {
  const std::string plan =
      "pretrain_gpt.py --num-layers 6 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
      "--max-position-embeddings 1024 --micro-batch-size 1 --vocab-size 32000 --bf16 "
      "--pipeline-model-parallel-size 4";
  const auto besides = [&](const std::string& more) {
    const LaunchInput input = input_of("torchrun " + plan + more + "\n", "run.sh");
    TomlValue document = facts_document(input.facts, "run.sh");
    set_path(document, "cluster.node", toml_text("dgx-h100", "--gpu"));
    const auto missing = missing_keys(document, input.facts, catalogue());
    CHECK(missing.size() == 2);  // nodes and a batch
    return refusal_besides(document, input.facts, catalogue(), missing);
  };
  CHECK(besides("").empty());
  CHECK(besides(" --tensor-model-parallel-size 2").empty());
  CHECK_THAT(besides(" --num-virtual-stages-per-pipeline-rank 2"),
             Catch::Matchers::Contains("exceeds the 6 layers"));
}
