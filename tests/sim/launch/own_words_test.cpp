// What is laid over a file of a framework that has no form of its own is read back, before that
// file, to the plan that it was written for.
#include "sim/launch/own_words.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <random>

#include "engine/check.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/json_text.hpp"
#include "sim/inputs/document.hpp"
#include "sim/inputs/launch_file.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

using Key = std::pair<std::string, TomlValue>;

TomlValue word(const char* text) { return toml_text(text, "--set"); }
TomlValue number(std::int64_t value) { return {value, "--set"}; }

/// The scenario that files make on two nodes of H100, these keys over them.
Scenario scenario_of(const std::vector<NamedText>& files, const std::vector<Key>& keys) {
  const auto input = read_launch_files(files, catalogue());
  REQUIRE(input);
  CHECK(input->understanding.unknown == std::vector<std::string>{});
  TomlValue out = facts_document(input->facts, "read.toml");
  set_path(out, "cluster.node", word("dgx-h100"));
  set_path(out, "cluster.nodes", number(2));
  for (const auto& [key, value] : keys) {
    set_path(out, key, value);
    if (key == "batch.global") erase_path(out, "batch.local");
  }
  complete_machine(out, input->facts, catalogue());
  CHECK(missing_keys(out, input->facts, catalogue()).empty());
  return read_scenario(out, catalogue());
}

struct Stack {
  const char* name;
  const char* file;  // of scenarios/launch; empty: `more` is all
  bool megatron;
  std::string more{};  // behind it
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  template <class T>
  T of(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }
  bool often() { return random_() % 4 != 0; }

 private:
  std::mt19937_64 random_;
};

std::vector<Key> drawn(Draw& draw, const Stack& stack) {
  using Number = std::int64_t;
  std::vector<Key> out{{"batch.micro_batch", number(draw.of<Number>({1, 2, 4}))},
                       {"batch.global", number(draw.of<Number>({64, 128, 256}))},
                       {"plan.recompute", word(draw.of<const char*>({"none", "full"}))},
                       {"precision.compute", word(draw.often() ? "bf16" : "fp16")}};
  const auto set = [&](const char* key, TomlValue value) { out.emplace_back(key, value); };
  const bool verl = std::string_view(stack.name).starts_with("verl"),
             v1 = std::string_view(stack.name) == "llama-factory-v1";
  if (!draw.often()) set("model.lora_rank", number(draw.of<Number>({0, 8})));
  if (!stack.megatron) {
    if (!draw.often())
      set("plan.optimizer",
          word(draw.of<const char*>({"adam", "adam_8bit", "adafactor", "sgd", "muon"})));
    if (verl)
      set("plan.data", word(draw.of<const char*>({"zero2", "zero3"})));
    else
      set("plan.data", word(draw.of<const char*>({"ddp", "zero1", "zero2", "zero3"})));
    if ((verl || v1) && !draw.often()) set("plan.context", number(2));
    if ((verl || v1) && !draw.often()) set("plan.shard_degree", number(8));
    if (v1) set("software.context_exchange", word("all_to_all"));
    if (v1) set("precision.gradient_reduce", word(draw.often() ? "fp32" : "bf16"));
    return out;
  }
  const Number tensor = draw.of<Number>({1, 2, 4}), pipeline = draw.of<Number>({1, 2, 4});
  set("plan.tensor", number(tensor));
  set("plan.sequence_parallel", TomlValue{tensor > 1, "--set"});
  set("plan.pipeline", number(pipeline));
  if (pipeline > 1 && !draw.often()) set("plan.virtual_stages", number(2));
  set("plan.expert", number(draw.of<Number>({1, 2, 4, 8})));
  set("plan.expert_tensor", number(1));
  set("plan.data", word(draw.often() ? "zero1" : "ddp"));
  set("plan.dispatcher", word(draw.often() ? "all_to_all" : "node_aware"));
  if (verl && !draw.often()) set("plan.context", number(2));
  if (verl && !draw.often()) set("plan.shared_expert_overlap", TomlValue{false, "--set"});
  return out;
}

std::string text_of(const std::string& file) {
  return read_packed(STEPCAST_SOURCE_DIR "/scenarios/launch/" + file);
}

const char* const swift_trainer =
    "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --tuner_type full --max_length 4096 "
    "--per_device_train_batch_size 1 --deepspeed zero3\n";

const char* const verl_engine =
    "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.sft_trainer model.path=Qwen/Qwen3-8B "
    "data.max_length=4096 data.max_token_len_per_gpu=8192 engine.strategy=fsdp2\n";
const char* const verl_megatron =
    "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.sft_trainer engine=megatron "
    "model.path=Qwen/Qwen3-30B-A3B data.max_length=4096 data.use_dynamic_bsz=False\n";

const Stack stacks[] = {
    {"axolotl", "axolotl_lora.yaml", false},
    {"axolotl", "axolotl_lora.yaml", false,
     "fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n  offload_params: false\n"},
    {"llama-factory", "llama_factory_full.yaml", false},
    {"swift", "swift_megatron.sh", true},
    {"swift", "", false, swift_trainer},
    {"verl", "verl_grpo.sh", false},
    {"verl", "verl_grpo.sh", false, "actor_rollout_ref.actor.use_dynamic_bsz=True"},
    {"verl", "verl_grpo.sh", true,
     "actor_rollout_ref.model.path=Qwen/Qwen3-30B-A3B model_engine=megatron "
     "actor_rollout_ref.actor.use_dynamic_bsz=True "
     "actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full"},
    {"verl-sft", "", false, verl_engine},
    {"verl-sft", "", true, verl_megatron},
    {"verl-fsdp-sft", "verl_sft.sh", false},
    {"llama-factory-v1", "llama_factory_v1.yaml", false},
};

NamedText base_of(const Stack& stack) {
  if (*stack.file == '\0') return {"base.sh", stack.more};
  std::string text = text_of(stack.file);
  const std::size_t rest = text.find(" $@");
  if (rest != std::string::npos && !stack.more.empty())
    text.replace(rest, 3, " " + stack.more);
  else
    text += stack.more;
  return {"base" + std::string(stack.file).substr(std::string_view(stack.file).rfind('.')), text};
}

}  // namespace

TEST_CASE("words laid over a file are read back to the plan of 200 random ones of each stack") {
  for (const Stack& stack : stacks)
    DYNAMIC_SECTION(stack.name << " over " << stack.file << " " << stack.more) {
      const NamedText base = base_of(stack);
      Draw draw(20261129);
      int written = 0;
      for (int tries = 0; written < 200 && tries < 20'000; ++tries) {
        Scenario s;
        try {
          s = scenario_of({base}, drawn(draw, stack));
        } catch (const InputError&) {
          continue;  // no legal plan
        }
        const Launch launch = own_words_of(s, stack.name, true);
        INFO(launch.why_not);
        REQUIRE(launch.files.empty() != launch.why_not.empty());
        if (launch.files.empty()) continue;
        ++written;
        std::vector<NamedText> files;
        for (const LaunchFile& file : launch.files) files.push_back({file.name, file.text});
        files.push_back(base);
        INFO(launch.files[0].text);
        const bool of_verl = std::string_view(stack.name) == "verl";
        std::vector<Key> own;  // what stays the command's own
        if (of_verl) own.emplace_back("batch.global", number(s.global_batch));
        Scenario read = scenario_of(files, own);
        if (s.plan.shards() == s.plan.copies()) s.plan.shard_degree = read.plan.shard_degree;
        if (s.plan.tensor == 1) s.plan.sequence_parallel = read.plan.sequence_parallel;
        if (s.plan.copies() == 1) s.plan.data = read.plan.data;
        REQUIRE(read.plan == s.plan);
        REQUIRE(read.batch == s.batch);
        REQUIRE(read.precision.compute == s.precision.compute);
        REQUIRE(read.model.lora.rank == s.model.lora.rank);
        if (s.model.lora.rank > 0) REQUIRE(read.model.lora.targets == s.model.lora.targets);
        REQUIRE(read.global_batch == s.global_batch);
        REQUIRE(read.software.framework == s.software.framework);
        if (std::string_view(stack.name) == "llama-factory-v1" &&
            s.plan.data != workloads::DataParallel::ddp)
          REQUIRE(read.precision.gradient_reduce == s.precision.gradient_reduce);
      }
      CHECK(written == 200);
    }
}

TEST_CASE("a plan that a stack has no words for is refused with the reason") {
  const NamedText base = base_of(stacks[5]);
  CHECK_THAT(own_words_of(scenario_of({base}, {{"plan.data", word("ddp")}}), "verl").why_not,
             Contains("verl's FSDP shards gradients as well"));
  const NamedText sft = base_of(std::end(stacks)[-1]);
  CHECK_THAT(
      own_words_of(scenario_of({sft}, {{"plan.data", word("zero2")}}), "verl-fsdp-sft").why_not,
      Contains("shards parameters over all ranks: zero3"));
  const NamedText axolotl = base_of(stacks[0]);
  CHECK_THAT(
      own_words_of(scenario_of({axolotl}, {{"plan.recompute", word("selective")}}), "axolotl")
          .why_not,
      Contains("gradient_checkpointing is of all layers or none"));
}

TEST_CASE("ms-swift's Trainer shards by DeepSpeed's stages and exchanges heads") {
  const NamedText base{"sft.sh", swift_trainer};
  const Scenario s = scenario_of(
      {base},
      {{"plan.data", word("zero2")}, {"plan.context", number(2)}, {"batch.global", number(64)}});
  const Launch launch = own_words_of(s, "swift");
  REQUIRE(launch.files.size() == 1);
  for (const char* line : {"--sequence_parallel_size 2\n", "--deepspeed zero2\n"})
    CHECK_THAT(launch.files[0].text, Contains(line));
  CHECK_THAT(launch.files[0].text, !Contains("context_parallel_size"));
  const Scenario read = scenario_of({{"swift.args", launch.files[0].text}, base}, {});
  CHECK(read.plan == s.plan);
}

TEST_CASE("a DeepSpeed JSON keeps all that no plan has, and loses what the plan does not take") {
  const std::string theirs =
      R"({"train_batch_size": "auto", "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
          "zero_optimization": {"stage": 3, "sub_group_size": 1e9,
                                "offload_optimizer": {"device": "cpu", "pin_memory": true}}})";
  const std::string plan =
      R"({"train_batch_size": 64, "zero_optimization": {"stage": 2, "overlap_comm": true}})";
  const auto out = parsed_json(deepspeed_over(theirs, plan));
  CHECK(out == parsed_json(
                   R"({"train_batch_size": 64,
                       "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
                       "zero_optimization": {"stage": 2, "sub_group_size": 1e9,
                                             "overlap_comm": true}})"));
}

TEST_CASE("a DeepSpeed JSON loses an optimizer that the plan does not take") {
  const std::string theirs = R"({"optimizer": {"type": "Muon", "params": {"lr": 1e-3}}})";
  const auto type = [&](const std::string& plan, bool same) {
    const auto json = parsed_json(deepspeed_over(theirs, plan, same));
    return json.contains("optimizer") ? json["optimizer"]["type"].get<std::string>() : "";
  };
  CHECK(type("{}", true) == "Muon");
  CHECK(type("{}", false) == "");
  CHECK(type(R"({"optimizer": {"type": "SGD"}})", false) == "SGD");
}

TEST_CASE("what a stack has no word for is said beside its words") {
  const NamedText axolotl = base_of(stacks[0]), verl = base_of(stacks[5]);
  const auto said = [](const Launch& launch) {
    REQUIRE(launch.files.size() == 1);
    return launch.files[0].text;
  };
  const auto notes = [](const Launch& launch) {
    return fmt::format("{}", fmt::join(launch.notes, "\n"));
  };
  const Scenario muon = scenario_of({axolotl}, {{"plan.optimizer", word("muon")},
                                                {"software.fused_loss", {true, "--set"}},
                                                {"nccl.NCCL_PROTO", word("Simple")}});
  const Launch of_muon = own_words_of(muon, "axolotl");
  CHECK_THAT(said(of_muon), Contains("optimizer: muon\n"));
  CHECK_THAT(notes(of_muon), Contains("software.fused_loss is not said"));
  CHECK_THAT(notes(of_muon), Contains("NCCL_PROTO=Simple from the environment"));
  const Launch half = own_words_of(
      scenario_of({verl}, {{"precision.compute", word("fp16")}, {"model.lora_rank", number(16)}}),
      "verl");
  CHECK_THAT(said(half), Contains("actor.fsdp_config.dtype=float16\n"));
  CHECK_THAT(said(half), Contains("model.lora_rank=16\n"));
  for (const auto& [file, stack] : {std::pair{axolotl, "axolotl"}, {verl, "verl"}})
    CHECK_THAT(own_words_of(scenario_of({file}, {{"plan.recompute", word("full")},
                                                 {"plan.recompute_every", number(4)}}),
                            stack)
                   .why_not,
               Contains("of all layers or none"));
  CHECK_THAT(
      own_words_of(scenario_of({verl}, {{"plan.optimizer", word("adafactor")}}), "verl").why_not,
      Contains("plan.optimizer = adafactor"));
  CHECK_THAT(
      own_words_of(scenario_of({base_of(stacks[3])}, {{"plan.optimizer", word("muon")}}), "swift")
          .why_not,
      Contains("plan.optimizer = muon"));
  CHECK_THAT(own_words_of(scenario_of({verl}, {{"software.framework", word("pytorch-fsdp1")},
                                               {"software.version", word("2.3")},
                                               {"plan.optimizer_offload", {1.0, "--set"}},
                                               {"plan.parameter_offload", {1.0, "--set"}},
                                               {"plan.data", word("zero3")}}),
                          "verl")
                 .why_not,
             Contains("offload_policy"));
}
