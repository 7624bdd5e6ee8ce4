#include "sim/inputs/formats.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/inputs/launch_arguments.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "sim/inputs/vocabulary.hpp"
#include "sim/launch/other_words.hpp"
#include "sim/launch/trainer_words.hpp"

namespace stepcast::sim {
namespace {

bool any(const Settings& settings, std::string_view beginning) {
  const auto at = settings.all().lower_bound(beginning);
  return at != settings.all().end() && at->first.starts_with(beginning);
}

/// Where no argument says the layers, the parser's defaults are none of the model that --model
/// names.
void without_shape(Facts& facts) {
  std::vector<std::string> keys;
  for (const Fact& fact : facts.all)
    if (fact.key.starts_with("model.") && fact.key != "model.sequence" &&
        !fact.key.starts_with("model.lora_"))
      keys.push_back(fact.key);
  for (const std::string& key : keys) facts.erase(key.c_str());
}

void add_megatron(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                  const std::string& source) {
  Settings all = settings;
  if (all.has("@arguments")) set_usual_arguments(all);
  add_megatron_facts(facts, all, "", source);
  if (facts.find("model.layers") == nullptr) without_shape(facts);
  add_vocabulary(facts, all, catalogue, source);
  add_model_name(facts, catalogue, source);
  if (all.has("zero_optimization.stage")) add_deepspeed_facts(facts, all, source);
  const auto first = [&](const char* one, const char* other) {
    return all.integer(one) ? all.integer(one) : all.integer(other);
  };
  const auto each = first("nproc_per_node", "num_gpus"), nodes = first("nnodes", "num_nodes");
  if (each && !facts.ranks) {
    facts.gpus_per_node = *each;
    facts.ranks = *each * nodes.value_or(1);
    facts.ranks_source = source;
  }
}

/// What torchrun is told, of a configuration that says no machine.
void add_machine(Facts& facts, const Settings& settings, const std::string& source) {
  const auto each = settings.integer("nproc_per_node"), nodes = settings.integer("nnodes");
  if (facts.ranks || !each || *each < 1) return;
  facts.gpus_per_node = *each;
  facts.ranks = *each * std::max<std::int64_t>(1, nodes.value_or(1));
  facts.ranks_source = source;
}

/// Megatron-LM's programs, whatever they are told.
bool calls_megatron(const Settings& settings) {
  constexpr std::string_view programs[] = {"pretrain_gpt.py", "pretrain_hybrid.py",
                                           "pretrain_mamba.py"};
  return std::ranges::any_of(programs, [&](std::string_view one) { return calls(settings, one); });
}

/// Programs of verl that sample, or judge samples.
bool samples(const Settings& settings) {
  return calls(settings, "verl.trainer.main_generation") ||
         calls(settings, "verl.trainer.main_eval");
}

constexpr InputFormat formats[] = {
    {"a command line of verl without a training",
     samples,
     [](Facts&, const Settings&, const Catalogue&, const std::string& source) {
       throw InputError(source, "calls a program of verl that trains nothing",
                        "a step is forecast of verl.trainer.main_ppo, sft_trainer and "
                        "fsdp_sft_trainer");
     },
     {verl_words}},
    {"the command line of verl",
     [](const Settings& s) { return any(s, "actor_rollout_ref."); },
     add_verl_facts,
     {verl_words},
     "verl"},
    {"the command line of verl's FSDP trainer of demonstrations",
     [](const Settings& s) {
       return calls(s, "verl.trainer.fsdp_sft_trainer") || s.has("model.partial_pretrain");
     },
     add_verl_fsdp_sft_facts,
     {verl_sft_words},
     "verl-fsdp-sft"},
    {"the command line of verl's trainer of demonstrations",
     [](const Settings& s) {
       return calls(s, "verl.trainer.sft_trainer") ||
              (s.has("data.micro_batch_size_per_gpu") && any(s, "engine."));
     },
     add_verl_sft_facts,
     {verl_sft_words},
     "verl-sft"},
    {"the registry and command line of torchtitan",
     [](const Settings& s) {
       return s.has("training.max_context_length") || s.has("model_spec") ||
              ((calls(s, "torchtitan.train") || calls(s, "run_train.sh")) &&
               !s.has("training.seq_len"));
     },
     add_torchtitan_2026_facts,
     {torchtitan_words}},
    {"the TOML of torchtitan",
     [](const Settings& s) { return s.has("training.seq_len") || s.has("model.flavor"); },
     [](Facts& facts, const Settings& settings, const Catalogue& catalogue,
        const std::string& source) {
       add_torchtitan_facts(facts, settings, catalogue, source);
       add_machine(facts, settings, source);
       // Its TOML was read up to then; a log names its GPU.
       if (!facts.find("software.version") && !settings.has("gpu"))
         facts.set("software.version", toml_text("2025", ""), source);
     },
     {torchtitan_words}},
    {"the YAML of nanotron",
     [](const Settings& s) { return any(s, "parallelism.dp") && any(s, "tokens."); },
     add_nanotron_facts,
     {nanotron_words}},
    {"the arguments of GPT-NeoX",
     [](const Settings& s) { return s.has("pipe_parallel_size") && s.has("num_layers"); },
     add_neox_facts,
     {neox_words, deepspeed_words}},
    {"the YAML of llm-foundry",
     [](const Settings& s) {
       return s.has("device_train_microbatch_size") || s.has("model.d_model");
     },
     add_foundry_facts,
     {foundry_words}},
    {"the YAML of NeMo",
     [](const Settings& s) {
       return (s.has("model.num_layers") || s.has("model.tensor_model_parallel_size")) &&
              (any(s, "trainer.") || s.has("model.encoder_seq_length") ||
               s.has("model.micro_batch_size"));
     },
     [](Facts& facts, const Settings& settings, const Catalogue&, const std::string& source) {
       add_megatron_facts(facts, settings, "model.", source);
     },
     {nemo_words}},
    {"the overrides of Megatron-Bridge",
     [](const Settings& s) {
       return s.has("recipe") || calls(s, "run_recipe.py") || calls(s, "stepcast_recipe.py") ||
              s.has("train.global_batch_size") || s.has("train.micro_batch_size") ||
              s.has("model.tensor_model_parallel_size") || s.has("model.num_layers");
     },
     add_bridge_facts,
     {bridge_words}},
    {"the JSON of stepcast launch for FSDP",
     [](const Settings& s) { return s.has("init_device_mesh.tp"); },
     [](Facts& facts, const Settings& settings, const Catalogue&, const std::string& source) {
       add_fsdp_facts(facts, settings, source);
       add_machine(facts, settings, source);
     },
     {fsdp_words}},
    {"the arguments of ms-swift",
     [](const Settings& s) {
       return s.has("tuner_type") || s.has("train_type") || calls(s, "swift sft") ||
              calls(s, "swift pt") || calls(s, "megatron sft") || calls(s, "megatron pt");
     },
     add_trainer_facts,
     {swift_words, trainer_words, deepspeed_words},
     "swift"},
    {"the arguments of Megatron-LM",
     [](const Settings& s) {
       return calls_megatron(s) || s.has("num_layers") || s.has("hybrid_layer_pattern") ||
              s.has("hybrid_override_pattern") ||
              (s.has("tensor_model_parallel_size") && !s.has("model_name_or_path"));
     },
     add_megatron,
     {megatron_words, deepspeed_words}},
    {"the YAML of Axolotl",
     [](const Settings& s) { return s.has("base_model"); },
     add_trainer_facts,
     {axolotl_words, trainer_words, deepspeed_words, accelerate_words},
     "axolotl"},
    {"the v1 YAML of LLaMA-Factory",
     [](const Settings& s) {
       const bool parts = any(s, "dist_config.") || any(s, "peft_config.") ||
                          any(s, "kernel_config.") || s.has("cutoff_len");
       return s.has("model") && parts && !s.has("model_name_or_path");
     },
     add_trainer_facts,
     {llama_factory_v1_words, deepspeed_words, accelerate_words},
     "llama-factory-v1"},
    {"the YAML of LLaMA-Factory",
     [](const Settings& s) {
       return s.has("finetuning_type") || s.has("cutoff_len") ||
              (s.has("template") && s.has("model_name_or_path"));
     },
     add_trainer_facts,
     {llama_factory_words, trainer_words, deepspeed_words, accelerate_words},
     "llama-factory"},
    {"the arguments of DeepSpeed-Chat",
     [](const Settings& s) {
       return s.has("actor_model_name_or_path") ||
              (s.has("data_split") && s.has("model_name_or_path"));
     },
     add_deepspeed_chat_facts,
     {deepspeed_chat_words, trainer_words, deepspeed_words, accelerate_words}},
    {"the arguments of transformers and TRL",
     [](const Settings& s) {
       return s.has("model_name_or_path") || s.has("per_device_train_batch_size");
     },
     add_trainer_facts,
     {trainer_words, accelerate_words, deepspeed_words}},
    {"the YAML of accelerate",
     [](const Settings& s) { return s.has("distributed_type") || s.has("compute_environment"); },
     add_trainer_facts,
     {accelerate_words, trainer_words, deepspeed_words}},
    {"the JSON of DeepSpeed",
     [](const Settings& s) {
       return s.has("train_micro_batch_size_per_gpu") || s.has("train_batch_size") ||
              any(s, "zero_optimization.");
     },
     [](Facts& facts, const Settings& settings, const Catalogue&, const std::string& source) {
       add_deepspeed_facts(facts, settings, source);
       add_machine(facts, settings, source);
     },
     {deepspeed_words, accelerate_words}},
};

}  // namespace

std::vector<LaunchWords> InputFormat::tables() const {
  std::vector<LaunchWords> out;
  for (const auto table : words)
    if (table != nullptr) out.push_back(table());
  return out;
}

std::span<const InputFormat> input_formats() { return formats; }

bool calls(const Settings& settings, std::string_view program) {
  const std::string* called = settings.find("@program");
  return called != nullptr && called->find(program) != std::string::npos;
}

const InputFormat* format_of(const Settings& settings) {
  for (const InputFormat& format : input_formats())
    if (format.is(settings)) return &format;
  return nullptr;
}

void add_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
               const std::string& source) {
  if (const InputFormat* format = format_of(settings))
    format->add(facts, settings, catalogue, source);
}

}  // namespace stepcast::sim
